"""Typed events: a routing key, the pydantic model of its body, and the model's version, with upcasters for older versions.

order_placed = Event("order.placed", Order, version=2)

@order_placed.upcast(from_=1)
def add_currency(body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "currency": "EUR"}

await publisher.publish(order_placed, Order(…))

@consume(order_placed)
async def charge(order: Order) -> None: …
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar, Unpack

from pydantic import BaseModel
from pydantic_core import from_json, to_json

from outbox.core.arguments import at_least_one
from outbox.core.codec import VERSION_HEADER, event_version
from outbox.core.message import OutboxMessage, PublishOptions
from outbox.core.outcome import qualified_name
from outbox.errors import ConfigurationError, EncodingError, MalformedMessageError, UnsupportedVersionError

__all__ = ["VERSION_HEADER", "Event", "Upcaster"]

# Invariant: with a covariant model, a type checker would accept a body of any model, as their common base class.
ModelT = TypeVar("ModelT", bound=BaseModel)

Upcaster = Callable[[dict[str, Any]], dict[str, Any]]
"""Takes the JSON object of one version, which it may change, and returns that of the next version."""


@dataclass(frozen=True, eq=False)
class Event(Generic[ModelT]):
    """An event that is published with a body of one model. Pass it to `publish` and `consume` in place of a routing key.

    `version` is that of `model`; raise it when the body changes so that consumers or publishers of the version before could not
    read it, and register an upcaster. Messages carry it in the header `event-version`. Consumers accept the versions from
    `oldest` on, and their handlers get a `model` in every case. A message without the header has the version `default_version`.

    The routing key is one key and not a pattern. Raises `ConfigurationError` for invalid arguments.
    """

    routing_key: str
    model: type[ModelT]
    version: int = field(default=1, kw_only=True)
    oldest: int = field(default=1, kw_only=True)
    default_version: int = field(default=1, kw_only=True)
    _upcasters: dict[int, Upcaster] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.routing_key, str) or not self.routing_key or {"*", "#"} & set(self.routing_key.split(".")):
            raise ConfigurationError(
                f"an event needs one routing key, such as 'order.placed', without * and #, not {self.routing_key!r}"
            )
        if not isinstance(self.model, type) or not issubclass(self.model, BaseModel):
            raise ConfigurationError(f"the body of {self.routing_key!r} must be a pydantic model, not {self.model!r}")
        at_least_one("version", self.version)
        for name in ("oldest", "default_version"):
            at_least_one(name, getattr(self, name), most=self.version, because="the version of the event")

    def upcast(self, *, from_: int) -> Callable[[Upcaster], Upcaster]:
        """Decorator that registers the function that turns a body of version `from_` into one of version `from_ + 1`.

        The function takes and returns the JSON object of a body. If it raises `ValueError`, the message is dead-lettered at
        once; any other exception is a failed attempt. Raises `ConfigurationError` for a version that needs no upcaster or
        already has one.
        """
        if at_least_one("from_", from_) not in range(self.oldest, self.version):
            raise ConfigurationError(
                f"{self.routing_key!r} accepts the versions {self.oldest} to {self.version}: it needs no upcaster from {from_}"
            )
        if from_ in self._upcasters:
            raise ConfigurationError(f"{self.routing_key!r} already has an upcaster from version {from_}")

        def register(upcaster: Upcaster) -> Upcaster:
            if not callable(upcaster) or inspect.iscoroutinefunction(upcaster):
                raise ConfigurationError(f"an upcaster must be a function that is not async, not {upcaster!r}")
            self._upcasters[from_] = upcaster
            return upcaster

        return register

    @property
    def versions(self) -> Mapping[str, int]:
        """The versions that a consumer reads, for the admin API."""
        return {"version": self.version, "oldest": self.oldest, "default_version": self.default_version}

    def check(self) -> None:
        """Raises `ConfigurationError` if an upcaster is missing. Called for each consumer when it is created."""
        missing = [version for version in range(self.oldest, self.version) if version not in self._upcasters]
        if missing:
            raise ConfigurationError(
                f"{self.routing_key!r} accepts the versions {self.oldest} to {self.version}, but has no upcaster from "
                f"{', '.join(map(str, missing))}: write @….upcast(from_={missing[0]}) above its consumers, or raise oldest"
            )

    def message(self, body: ModelT, **options: Unpack[PublishOptions]) -> OutboxMessage:
        """Returns a message with `body` and the version, for `bulk_publish`. The options are those of `publish`.

        Raises `EncodingError` if `body` is not an instance of the model, and for a header `event-version` in `headers`.
        """
        if not isinstance(body, self.model):
            raise EncodingError(
                f"the body of {self.routing_key!r} must be {qualified_name(self.model)}, not {qualified_name(type(body))}"
            )
        message = OutboxMessage(self.routing_key, body, **options)
        headers = message.headers or {}
        if not isinstance(headers, Mapping):
            raise EncodingError(f"the headers of {self.routing_key!r} must be a mapping, not {type(headers).__name__}")
        if VERSION_HEADER in headers:
            raise EncodingError(f"the header {VERSION_HEADER!r} of {self.routing_key!r} is set by its event: remove it")
        return replace(message, headers={**headers, VERSION_HEADER: self.version})

    def read(self, body: bytes, headers: Mapping[str, Any]) -> ModelT:
        """Returns the body of a received message as the model, whatever version it was published with.

        Raises `ValueError` (pydantic's `ValidationError` and `MalformedMessageError` are such) if it cannot be read,
        `UnsupportedVersionError` if it is newer than this event, and the errors of upcasters.
        """
        version = event_version(headers, default=self.default_version)
        if version == self.version:
            return self.model.model_validate_json(body)
        if version > self.version:
            raise UnsupportedVersionError(
                f"the message has version {version} of {self.routing_key!r}, but this consumer knows versions up to "
                f"{self.version}: deploy the newer consumer, then requeue what has become a dead letter"
            )
        if version < self.oldest:
            raise MalformedMessageError(
                f"the message has version {version} of {self.routing_key!r}, and the oldest that is accepted is {self.oldest}"
            )
        try:
            value = from_json(body)
        except ValueError as error:
            raise MalformedMessageError(f"the body of {self.routing_key!r}, version {version}, is not JSON: {error}") from error
        for step in range(version, self.version):
            if not isinstance(value, dict):
                raise MalformedMessageError(f"version {step} of {self.routing_key!r} must be a JSON object")
            value = self._upcasters[step](value)
        # From JSON again, since a strict model accepts a date as text from JSON only.
        return self.model.model_validate_json(to_json(value))


def by_routing_key(events: Iterable[Event[Any]]) -> dict[str, Event[Any]]:
    """Returns published events by routing key. Raises `ConfigurationError` for two events of one key: a document shows one."""
    found: dict[str, Event[Any]] = {}
    for event in events:
        if found.setdefault(event.routing_key, event) is not event:
            raise ConfigurationError(
                f"two published events have the routing key {event.routing_key!r}: give each model a key of its own, or make "
                f"them versions of one event"
            )
    return found
