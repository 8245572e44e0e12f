"""Examples of each operation for the OpenAPI document: a `curl` command, a body, and a response."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter


@dataclass(frozen=True, slots=True)
class Example:
    """An example request: a path below the prefix, and a body if the operation takes one."""

    address: str
    body: Mapping[str, Any] | None = None


_SELECTOR = {"ids": ["17", "outbox-4"]}
_PAUSE = {"scope": "queue", "name": "mail"}
EXAMPLES: Mapping[str, Example] = {
    "outbox_health_live": Example("/health/live"),
    "outbox_health_ready": Example("/health/ready"),
    "outbox_session_show": Example("/session"),
    "outbox_session_begin": Example("/session", {"token": "outbox_YUkPDx0qGdSXGmMNR3L3NdJz3HhtH8LqKyVj4Hq1Xhc"}),
    "outbox_session_end": Example("/session"),
    "outbox_health_verdict": Example("/health/verdict"),
    "outbox_search": Example("/search?q=order-42"),
    "outbox_backlog_show": Example("/backlog?routing_keys=5"),
    "outbox_queues_list": Example("/queues"),
    "outbox_queues_show": Example("/queues/mail"),
    "outbox_messages_list": Example("/messages?state=held&limit=20"),
    "outbox_messages_show": Example("/messages/1000001"),
    "outbox_messages_publish": Example(
        "/messages", {"routing_key": "order.placed", "body": {"order": 42}, "reason": "trying the new consumer"}
    ),
    "outbox_messages_cancel": Example("/messages/cancel", {"selector": {"ids": ["1000001"]}, "reason": "published twice"}),
    "outbox_messages_send_now": Example("/messages/send-now", {"selector": {"filter": {"state": "held"}}, "dry_run": True}),
    "outbox_messages_reschedule": Example(
        "/messages/reschedule", {"selector": {"ids": ["1000001"]}, "due_at": "2030-03-01T12:00:00Z", "priority": 5}
    ),
    "outbox_messages_edit": Example("/messages/1000001", {"version": 1834570921, "routing_key": "order.placed"}),
    "outbox_deliveries_list": Example("/deliveries?queue=mail&state=retrying"),
    "outbox_deliveries_show": Example("/deliveries/2000001"),
    "outbox_deliveries_retry": Example(
        "/deliveries/retry", {"selector": {"filter": {"queue": "mail", "state": "retrying"}}, "dry_run": True}
    ),
    "outbox_deliveries_move": Example(
        "/deliveries/move", {"selector": {"ids": ["2000001"]}, "to": "front", "reason": "a customer on the phone"}
    ),
    "outbox_deliveries_dead_letter": Example(
        "/deliveries/dead-letter", {"selector": {"ids": ["2000001"]}, "reason": "the customer is gone"}
    ),
    "outbox_dlq_list": Example("/dlq?queue=mail&queue=stock&failed_after=2026-03-01T12:00:00Z"),
    "outbox_dlq_groups": Example("/dlq/groups?by=fingerprint&status=open"),
    "outbox_dlq_note": Example("/dlq/groups/note", {"by": "fingerprint", "id": "8f1c00d2aa31be47", "note": "ask Ann"}),
    "outbox_dlq_group": Example("/dlq/groups/8f1c00d2aa31be47"),
    "outbox_dlq_policy": Example("/dlq/groups/policy", {"id": "8f1c00d2aa31be47", "per_hour": 100}),
    "outbox_dlq_mark": Example("/dlq/groups/status", {"id": "8f1c00d2aa31be47", "status": "fixed", "fixed_in": "2026.11.1"}),
    "outbox_dlq_show": Example("/dlq/17"),
    "outbox_dlq_body": Example("/dlq/17/body"),
    "outbox_requeue": Example("/requeue", {"selector": _SELECTOR, "reason": "the provider is back"}),
    "outbox_discard": Example("/discard", {"selector": {"filter": {"queue": "mail"}}, "dry_run": True}),
    "outbox_restore": Example("/restore", {"selector": _SELECTOR, "reason": "discarded by mistake"}),
    "outbox_operations_list": Example("/operations?active=true"),
    "outbox_operations_show": Example("/operations/1"),
    "outbox_operations_items": Example("/operations/1/items?outcome=refused"),
    "outbox_operations_pause": Example("/operations/1/pause"),
    "outbox_operations_resume": Example("/operations/1/resume"),
    "outbox_operations_cancel": Example("/operations/1/cancel"),
    "outbox_chains_list": Example("/chains?state=dead&limit=20"),
    "outbox_chains_show": Example("/chains/5c73762f-7c66-4b48-8146-637331cc91c6"),
    "outbox_attempts_list": Example("/attempts?queue=shop.mail&order=slowest&limit=20"),
    "outbox_stats_show": Example("/stats?from=-1h&step=5m&group_by=queue"),
    "outbox_components_list": Example("/components?schemas=true"),
    "outbox_pauses_list": Example("/pauses"),
    "outbox_pause": Example("/pause", {**_PAUSE, "reason": "the provider is down"}),
    "outbox_resume": Example("/resume", _PAUSE),
    "outbox_events_stream": Example("/events"),
    "outbox_topology_show": Example("/topology"),
    "outbox_asyncapi_show": Example("/asyncapi"),
    "outbox_access_list": Example("/access"),
    "outbox_access_revoke": Example("/access/tokens/1f0c2b7a9d3e5f60"),
    "outbox_session_methods": Example("/session/methods"),
    "outbox_access_end": Example("/access/sessions/5c73762f7c664b48"),
    "outbox_alerts_list": Example("/alerts?status=open"),
    "outbox_alerts_test": Example("/alerts/test"),
    "outbox_audit_list": Example("/audit?outcome=denied&created_after=2026-03-01T12:00:00Z"),
    "outbox_export_dlq": Example("/export/dlq?queue=mail&format=csv"),
    "outbox_export_messages": Example("/export/messages?state=held&format=ndjson&limit=100000"),
    "outbox_export_audit": Example("/export/audit?created_after=2026-03-01T12:00:00Z"),
    "outbox_export_operations": Example("/export/operations"),
}


def example_of(operation: str, method: str) -> dict[str, Any]:
    """Returns the OpenAPI extras of an operation: code sample and example body. Empty for unknown operations."""
    example = EXAMPLES.get(operation)
    if example is None:
        return {}
    words = ["curl -s", f'"$URL{example.address}"', '-H "$AUTH"']  # docs/admin.md sets both variables
    if method not in ("GET", "POST") or (method == "POST" and example.body is None):
        words.insert(1, f"-X {method}")
    if example.body is not None:
        words.append(f"--json '{json.dumps(example.body)}'")
    extra: dict[str, Any] = {"x-codeSamples": [{"lang": "Shell", "label": "curl", "source": " ".join(words)}]}
    if example.body is not None:
        extra["requestBody"] = {"content": {"application/json": {"example": example.body}}}
    return extra


_TIME = "2026-03-01T12:00:00.000Z"
_BY_TYPE: Mapping[str, Any] = {"integer": 1, "number": 1.5, "boolean": False, "object": {}, "null": None}


@cache
def values() -> Mapping[str, Any]:
    """Returns example values of fields, by `field` or `Model.field`. Other fields get one from their schema."""
    found: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
    return found


@cache
def answer_of(model: Any) -> Any:
    """Returns an example response from a model's schema. Every field has a value, because FastAPI omits null."""
    schema = TypeAdapter(model).json_schema(mode="serialization")
    return _value(schema, schema.get("$defs", {}))


class AnswerExample(dict[str, Any]):
    """The example response of a model. Built with the OpenAPI document, since building all of them would slow the import."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self._model = model

    def items(self) -> Any:
        """Returns the entries that FastAPI merges into the response's media type."""
        return {"example": answer_of(self._model)}.items()


def _value(schema: Mapping[str, Any], known: Mapping[str, Mapping[str, Any]]) -> Any:
    if "$ref" in schema:
        schema = known[schema["$ref"].rpartition("/")[2]]
    if "properties" in schema:
        model, answer = schema["title"], {}
        for name, field in schema["properties"].items():
            default = _value(field, known)
            named = values().get(name, default)
            # A value counts only if its type fits, since fields of one name may differ: `source` is a string, or a facet.
            answer[name] = values().get(f"{model}.{name}", named if type(named) is type(default) else default)
        return answer
    if "anyOf" in schema:
        return _value(schema["anyOf"][0], known)
    if "const" in schema or "enum" in schema:
        return schema.get("const", next(iter(schema.get("enum", ())), None))
    if schema.get("type") == "array":
        return [_value(schema["items"], known)]
    if schema.get("format") == "date-time":
        return _TIME
    return _BY_TYPE.get(schema.get("type", "null"), schema.get("title", "").lower())
