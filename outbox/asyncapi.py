"""AsyncAPI documents: what a service publishes and consumes, and which changes of that break others.

`asyncapi_document` writes one, `compare_documents` finds the changes between two.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import quote

from outbox.contracts import VERSION_HEADER, Event, by_routing_key
from outbox.core.codec import JSON
from outbox.engine.consumer import Consumer, body_schema, describe_consumers

__all__ = ["Change", "asyncapi_document", "compare_documents", "describe_contracts"]

ASYNCAPI_VERSION = "3.1.0"
VERSION, OLDEST, QUEUE = "x-outbox-version", "x-outbox-oldest-version", "x-outbox-queue"
"""Extensions: the version that a message is sent or read with, the oldest that is still read, and a consumer's queue."""

Json = Mapping[str, Any]


def asyncapi_document(consumers: Iterable[Json], events: Iterable[Event[Any]], *, title: str, version: str) -> dict[str, Any]:
    """Returns an AsyncAPI 3.1 document. `consumers` are described as `describe_contracts` does, `events` are published.

    It has a channel for each routing key and binding key, an operation `send` for each event, and an operation `receive` for
    each consumer. Equal input gives an equal document, in any order. `version` is the release of the service. Raises
    `ConfigurationError` for two events of one routing key.
    """
    channels: dict[str, dict[str, Any]] = {}
    operations: dict[str, dict[str, Any]] = {}
    schemas: dict[str, Any] = {}

    def add(action: str, name: str, routing_key: str, message: dict[str, Any], body: Json | None, **facts: Any) -> None:
        """Adds an operation, its message under the same key, and the channel."""
        key, channel_key = f"{action}.{_key(name)}", _key(routing_key)
        if body is not None:
            message["contentType"] = JSON
            message["payload"] = {"$ref": f"#/components/schemas/{key}"}
            schemas.update(_component_schemas(body, key))
        channel = channels.setdefault(channel_key, {"address": routing_key, "messages": {}})
        channel["messages"][key] = {"name": routing_key, **message}
        reference = f"#/channels/{channel_key}"
        operations[key] = {
            "action": action,
            "channel": {"$ref": reference},
            **facts,
            "messages": [{"$ref": f"{reference}/messages/{key}"}],
        }

    for _, event in sorted(by_routing_key(events).items()):
        message = {"headers": _version_header(event.version, event.version), VERSION: event.version}
        add("send", event.routing_key, event.routing_key, message, body_schema(event.model))
    for consumer in sorted(consumers, key=lambda consumer: str(consumer["queue"])):
        versions = consumer.get("event")
        message = {}
        if versions is not None:
            latest, oldest = versions.get("version", 1), versions.get("oldest", 1)
            message = {"headers": _version_header(oldest, latest), VERSION: latest, OLDEST: oldest}
        facts = {"title": consumer["handler"]} if consumer.get("handler") else {}
        body = consumer.get("body")
        add("receive", consumer["queue"], consumer["binding_key"], message, body, **facts, **{QUEUE: consumer["queue"]})
    return {
        "asyncapi": ASYNCAPI_VERSION,
        "info": {"title": title, "version": version},
        "channels": dict(sorted(channels.items())),
        "operations": operations,
        "components": {"schemas": schemas},
    }


def describe_contracts(consumers: Sequence[Consumer]) -> list[Json]:
    """Describes consumers for `asyncapi_document`, as workers report them."""
    return describe_consumers(consumers, retry_delays=(), prefetch_count=1)


def _key(name: str) -> str:
    """Returns a key with the characters that AsyncAPI allows: letters, digits, `.`, `-` and `_`. Other ones become `_2A`."""
    return quote(name, safe="").replace("~", "%7E").replace("%", "_")


def _version_header(oldest: int, latest: int) -> dict[str, Any]:
    return {"type": "object", "properties": {VERSION_HEADER: {"type": "integer", "minimum": oldest, "maximum": latest}}}


def _component_schemas(body: Json, key: str) -> dict[str, Any]:
    """Returns a model's schema and those of its parts by their names among the components, where references lead to them."""
    # Prefixed with the message: two models of the same name may differ.
    prefix = f"#/components/schemas/{key}."

    def converted(value: Any) -> Any:
        if isinstance(value, Mapping):
            # OpenAPI's form of a discriminator. In AsyncAPI it is the name of a field, which says less than `oneOf`.
            return {
                name: converted(part)
                for name, part in value.items()
                if not (name == "discriminator" and isinstance(part, Mapping) and "propertyName" in part)
            }
        if isinstance(value, list):
            return [converted(part) for part in value]
        return value.replace("#/$defs/", prefix, 1) if isinstance(value, str) and value.startswith("#/$defs/") else value

    schema = converted({name: part for name, part in body.items() if name != "$defs"})
    return {key: schema, **{f"{key}.{name}": converted(part) for name, part in body.get("$defs", {}).items()}}


# --- comparison ----------------------------------------------------------------------------------------------------------

ChangeKind = Literal[
    "channel_removed",
    "operation_removed",
    "message_removed",
    "schema_removed",
    "version_lowered",
    "version_raised",
    "version_dropped",
    "field_removed",
    "field_required",
    "field_optional",
    "field_refused",
    "type_changed",
    "values_changed",
    "limit_changed",
]


@dataclass(frozen=True, slots=True)
class Change:
    """A change between two documents. `breaks` names those who can no longer work as before, None if it breaks neither.

    `where` is the operation with the path in its body, as in `send.order.placed: lines[].sku`.
    """

    kind: ChangeKind
    breaks: Literal["consumers", "publishers"] | None
    where: str
    text: str


def compare_documents(old: Json, new: Json) -> list[Change]:
    """Returns the changes from `old` to `new` that others should know about, in the order of `old`.

    What a service sends must fit the schema that consumers know, the old one. What it receives was written for the old schema
    and must fit the new one. A body whose version was raised is not compared: upcasters translate it. Additions are no changes
    in this sense. Raises `ValueError` if one of the two is not an AsyncAPI document of version 3.
    """
    for name, document in (("old", old), ("new", new)):
        if not isinstance(document, Mapping) or not str(document.get("asyncapi", "")).startswith("3."):
            raise ValueError(f"the {name} document is not AsyncAPI 3: it needs a field asyncapi, such as {ASYNCAPI_VERSION!r}")
    return list(_Comparison(old, new).changes())


@dataclass(frozen=True, slots=True)
class _Comparison:
    old: Json
    new: Json

    def changes(self) -> Iterator[Change]:
        addresses = {_address(self.new, channel) for channel in self.new.get("channels", {}).values()}
        for key, operation in self.old.get("operations", {}).items():
            channel = resolve(self.old, operation.get("channel", {}))
            address = _address(self.old, channel)
            breaks: Literal["consumers", "publishers"] = "consumers" if operation.get("action") == "send" else "publishers"
            other = self.new.get("operations", {}).get(key)
            verb = "sent" if breaks == "consumers" else "received"
            if address not in addresses:
                yield Change("channel_removed", breaks, key, f"the channel {address} was removed")
            elif other is None or other.get("action") != operation.get("action"):
                yield Change("operation_removed", breaks, key, f"messages of {address} are no longer {verb}")
            elif (moved := _address(self.new, resolve(self.new, other.get("channel", {})))) != address:
                yield Change("channel_removed", breaks, key, f"{moved} is {verb} in place of {address}")
            else:
                yield from self.messages(key, operation, other, breaks)

    def messages(self, where: str, old: Json, new: Json, breaks: Literal["consumers", "publishers"]) -> Iterator[Change]:
        before, after = _messages_of(self.old, old), _messages_of(self.new, new)
        for key, message in before.items():
            if key not in after:
                yield Change("message_removed", breaks, where, f"the message {key} was removed")
                continue
            found = list(self.versions(where, message, after[key], breaks))
            yield from found
            if not any(change.kind in ("version_raised", "version_lowered") for change in found):
                yield from self.bodies(where, message, after[key], breaks)

    def versions(self, where: str, old: Json, new: Json, breaks: Literal["consumers", "publishers"]) -> Iterator[Change]:
        before, after = old.get(VERSION), new.get(VERSION)
        if before is not None and (after is None or after < before):
            yield Change("version_lowered", breaks, where, f"the version {before} became {after or 'none'}")
        elif after is not None and after > (before or 1):
            first = "deploy its consumers before" if breaks == "consumers" else "deploy it before its publishers"
            yield Change("version_raised", None, where, f"the version {before or 1} became {after}: {first}")
        oldest_before, oldest_after = old.get(OLDEST, 1), new.get(OLDEST, 1)
        if breaks == "publishers" and after is not None and oldest_after > oldest_before:
            yield Change(
                "version_dropped", breaks, where, f"versions below {oldest_after} are refused, {oldest_before} was accepted"
            )

    def bodies(self, where: str, old: Json, new: Json, breaks: Literal["consumers", "publishers"]) -> Iterator[Change]:
        before, after = _payload(self.old, old), _payload(self.new, new)
        if before is None:
            if after is not None and breaks == "publishers":
                yield Change("type_changed", breaks, where, "any body was accepted, and one schema is now required")
        elif after is None:
            if breaks == "consumers":
                yield Change("schema_removed", breaks, where, "the body no longer has a schema")
        else:
            written, read = (after, before) if breaks == "consumers" else (before, after)
            documents = (self.new, self.old) if breaks == "consumers" else (self.old, self.new)
            yield from _Fit(*documents, breaks, where).check(written, read, "")


def resolve(document: Json, value: Any) -> Json:
    """Returns what the references in `value` lead to; empty for a reference that leads nowhere."""
    seen = set[str]()
    while isinstance(value, Mapping) and isinstance(reference := value.get("$ref"), str):
        # Any document may be compared, so references can lead in a circle.
        if reference in seen or not reference.startswith("#/"):
            return {}
        seen.add(reference)
        siblings = {name: part for name, part in value.items() if name != "$ref"}
        found: Any = document
        for part in reference[2:].split("/"):
            found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
        value = {**found, **siblings} if isinstance(found, Mapping) else {}
    return value if isinstance(value, Mapping) else {}


def _address(document: Json, channel: Json) -> str:
    return str(resolve(document, channel).get("address", ""))


def _messages_of(document: Json, operation: Json) -> dict[str, Json]:
    """Returns the messages of an operation by key: those that it names, or else all of its channel."""
    named = operation.get("messages")
    if named is None:
        messages = resolve(document, operation.get("channel", {})).get("messages", {})
        return {key: resolve(document, message) for key, message in messages.items()}
    return {str(each.get("$ref", "")).rpartition("/")[2]: resolve(document, each) for each in named}


def _payload(document: Json, message: Json) -> Json | None:
    payload = message.get("payload")
    if isinstance(payload, Mapping) and "schemaFormat" in payload:
        payload = payload.get("schema")
    return None if payload is None else resolve(document, payload)


_UPPER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_LOWER = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_EXACT = ("pattern", "format", "multipleOf", "uniqueItems")


@dataclass(frozen=True, slots=True)
class _Fit:
    """Finds why a body that is written to one schema may not be readable with another."""

    written_in: Json
    read_in: Json
    breaks: Literal["consumers", "publishers"]
    operation: str
    active: frozenset[tuple[str, str]] = frozenset()
    """The pairs of schemas that are being compared, around this one."""

    def check(self, written: Any, read: Any, path: str) -> Iterator[Change]:
        """Yields a change for each part of `written` that `read` does not accept."""
        pair = (json.dumps(written, sort_keys=True), json.dumps(read, sort_keys=True))
        if pair in self.active:  # a recursive model
            return
        inner = replace(self, active=self.active | {pair})
        writers, readers = _alternatives(self.written_in, written), _alternatives(self.read_in, read)
        for writer in writers:
            fits = [(reader, list(inner.compare(writer, reader, path))) for reader in readers]
            if any(not found for _, found in fits):
                continue
            # Of several alternatives, the one of the same type and title is what the writer's has become.
            same = [found for reader, found in fits if _identity(reader) == _identity(writer)]
            if len(same) == 1 or len(readers) == len(writers) == 1:
                yield from same[0] if len(same) == 1 else fits[0][1]
            else:
                yield self.type_change(path, writers, readers)

    def compare(self, writer: Json, reader: Json, path: str) -> Iterator[Change]:
        """Compares two schemas without alternatives."""
        types, accepted = _types(writer), _types(reader)
        if accepted and not (types and types <= (accepted | {"integer"} if "number" in accepted else accepted)):
            yield self.type_change(path, [writer], [reader])
            return
        yield from self.limits(writer, reader, path)
        yield from self.fields(writer, reader, path)
        if not writer.get("properties"):
            yield from self.keys(writer, reader, f"{path}{{}}")
        if "items" in reader and reader["items"] is not False:
            yield from self.check(writer.get("items", {}), reader["items"], f"{path}[]")
        before, after = writer.get("prefixItems", ()), reader.get("prefixItems", ())
        for index, (one, other) in enumerate(zip(before, after, strict=False)):
            yield from self.check(one, other, f"{path}[{index}]")

    def limits(self, writer: Json, reader: Json, path: str) -> Iterator[Change]:
        possible, accepted = _enumerated(writer), _enumerated(reader)
        if accepted is not None and possible is None:
            now = "is no longer limited to" if self.breaks == "consumers" else "must now be one of"
            yield self.change("values_changed", path, f"{now} {', '.join(map(json.dumps, accepted))}")
        elif extra := [value for value in possible or () if accepted is not None and value not in accepted]:
            now = "may now be" if self.breaks == "consumers" else "may no longer be"
            yield self.change("values_changed", path, f"{now} {', '.join(map(json.dumps, extra))}")
        for name in (*_UPPER, *_LOWER, *_EXACT):
            own, limit = writer.get(name), reader.get(name)
            if limit is None or own == limit:
                continue
            is_within = own is not None and ((name in _UPPER and own <= limit) or (name in _LOWER and own >= limit))
            if not is_within:
                before, after = (limit, own) if self.breaks == "consumers" else (own, limit)
                yield self.change("limit_changed", path, f"{name} was {_shown(before)} and is {_shown(after)}")

    def fields(self, writer: Json, reader: Json, path: str) -> Iterator[Change]:
        written, read = writer.get("properties", {}), reader.get("properties", {})
        always, needed = set(writer.get("required", ())), set(reader.get("required", ()))
        extra = reader.get("additionalProperties", True)
        for name, schema in read.items():
            inner = f"{path}.{name}" if path else name
            if name in written:
                if name in needed and name not in always:
                    now = "is no longer always present" if self.breaks == "consumers" else "is now required"
                    kind: ChangeKind = "field_optional" if self.breaks == "consumers" else "field_required"
                    yield self.change(kind, inner, now)
                yield from self.check(written[name], schema, inner)
            elif self.breaks == "consumers":
                yield self.change("field_removed", inner, "was removed")
            elif name in needed:
                yield self.change("field_required", inner, "is new and required")
            elif isinstance(writer.get("additionalProperties"), Mapping):  # it may have been a key of a mapping
                yield from self.check(writer["additionalProperties"], schema, inner)
        yield from self.extra_fields(writer, {name for name in written if name not in read}, extra, path)

    def extra_fields(self, writer: Json, names: set[str], extra: Any, path: str) -> Iterator[Change]:
        """Compares the fields `names`, and those without a name, with what the reader accepts as `additionalProperties`."""
        unnamed = writer.get("additionalProperties", True)
        if extra is False and unnamed is not False and self.breaks == "publishers":
            yield self.change("field_refused", path, "fields without a schema are now refused")
        for name in (name for name in writer.get("properties", {}) if name in names):
            inner = f"{path}.{name}" if path else name
            if extra is False:
                now = "is new, which consumers refuse" if self.breaks == "consumers" else "was removed, and is refused"
                yield self.change("field_refused", inner, now)
            elif isinstance(extra, Mapping):
                yield from self.check(writer["properties"][name], extra, inner)
        if isinstance(extra, Mapping) and not writer.get("properties"):  # a mapping of any keys to values of one schema
            for values in writer.get("patternProperties", {}).values() or (unnamed,):
                yield from self.check(values, extra, f"{path}{{}}")

    def keys(self, writer: Json, reader: Json, path: str) -> Iterator[Change]:
        """Compares the keys of two mappings, and the values whose keys have a pattern."""
        if "propertyNames" in reader:
            written, read = ({"type": "string", **each.get("propertyNames", {})} for each in (writer, reader))
            yield from self.check(written, read, path)
        patterns = writer.get("patternProperties", {})
        for pattern, values in reader.get("patternProperties", {}).items():
            if pattern in patterns:
                yield from self.check(patterns[pattern], values, path)
            else:
                own = next(iter(patterns), None)
                before, after = (pattern, own) if self.breaks == "consumers" else (own, pattern)
                yield self.change("limit_changed", path, f"pattern was {_shown(before)} and is {_shown(after)}")

    def type_change(self, path: str, writers: Sequence[Json], readers: Sequence[Json]) -> Change:
        written, read = (" or ".join(dict.fromkeys(map(_type_name, each))) for each in (writers, readers))
        before, after = (read, written) if self.breaks == "consumers" else (written, read)
        return self.change("type_changed", path, f"was {before} and is {after}")

    def change(self, kind: ChangeKind, path: str, text: str) -> Change:
        return Change(kind, self.breaks, f"{self.operation}: {path}" if path else self.operation, text)


def _alternatives(document: Json, schema: Any) -> list[Json]:
    """Returns the schemas of which a body must match one, without references, `anyOf`, `oneOf` and lists of types."""
    if schema is True:
        return [{}]
    if schema is False:
        return []
    schema = resolve(document, schema)
    rest = {name: value for name, value in schema.items() if name not in ("anyOf", "oneOf", "allOf", "discriminator")}
    for part in (resolve(document, part) for part in schema.get("allOf", ())):
        rest = {
            **rest,
            **part,
            "properties": {**rest.get("properties", {}), **part.get("properties", {})},
            "required": [*rest.get("required", ()), *part.get("required", ())],
        }
    branches = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    if branches:
        common = {name: value for name, value in rest.items() if name not in ("title", "description", "default", "examples")}
        return [{**common, **inner} for branch in branches for inner in _alternatives(document, branch)]
    if isinstance(types := rest.get("type"), list):
        return [{**rest, "type": each} for each in types]
    return [rest]


def _types(schema: Json) -> set[str]:
    """Returns the JSON types that a schema allows; empty for any."""
    if "type" in schema:
        return {schema["type"]}
    by_python: dict[type, str] = {
        str: "string",
        bool: "boolean",
        int: "integer",
        float: "number",
        list: "array",
        type(None): "null",
    }
    values = _enumerated(schema) or ()
    if values:
        return {by_python.get(type(value), "object") for value in values}
    return {"object"} if "properties" in schema else set()


def _enumerated(schema: Json) -> list[Any] | None:
    return [schema["const"]] if "const" in schema else schema.get("enum")


def _identity(schema: Json) -> tuple[Any, Any]:
    return (schema.get("title"), schema.get("type"))


def _type_name(schema: Json) -> str:
    (name, *more) = sorted(_types(schema)) or ["any"]
    text = " or ".join([name, *more])
    return f"{text} ({schema['title']})" if name == "object" and "title" in schema else text


def _shown(value: Any) -> str:
    return "not set" if value is None else json.dumps(value)
