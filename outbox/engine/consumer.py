"""Consumers: which messages a handler takes, through which queue, with which options."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

from pydantic import BaseModel, PydanticSchemaGenerationError
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError

from outbox.core.arguments import LONGEST_TIME, at_least_one, seconds
from outbox.core.duration import as_delay, as_delays
from outbox.engine.index_keys import IndexKeys
from outbox.engine.signature import CallPlan, plan_call
from outbox.errors import ConfigurationError, DurationError, Reject, RetryAfter
from outbox.retry import Choose, Delays, Strategy, as_strategy

PAUSE_AFTER = 5
PAUSE_FOR = "30s"
LONGEST_PAUSE = timedelta(days=1)
_NEVER_FAILURES = (KeyboardInterrupt,)
"""They end the process, and no attempt."""

Errors = type[BaseException] | Sequence[type[BaseException]]
Time = str | float | timedelta
"""A duration such as `"1m30s"`, seconds, or a timedelta."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pausing:
    """After `failures` of these `kinds` without a success between them, a consumer pauses for `pause`."""

    kinds: tuple[type[BaseException], ...]
    failures: int
    pause: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerOptions:
    """The terms on which a callback is called: all options that are about failures and time, in the form used inside.

    `strategy` None is the worker's; `timeout` None is no limit; `pausing` None is no pause.
    """

    strategy: Strategy | None
    dead_on: tuple[type[BaseException], ...]
    timeout: timedelta | None
    pausing: Pausing | None

    @property
    def pause_on(self) -> tuple[type[BaseException], ...]:
        """The exceptions that the consumer pauses on."""
        return () if self.pausing is None else self.pausing.kinds


def terms(
    *,
    retry_delays: Sequence[Time] | None,
    retry: object,
    dead_on: Errors,
    timeout: Time | None,
    pause_on: Errors,
    pause_after: int,
    pause_for: Time,
) -> ConsumerOptions:
    """What these options of a consumer mean together. Raises `ConfigurationError` if that makes no sense."""
    if retry is not None and retry_delays is not None:
        raise ConfigurationError("give retry or retry_delays, not both: retry=delays('1s', '1m') is retry_delays=('1s', '1m')")
    own_delays = None if retry_delays is None else Delays(as_delays(retry_delays))
    return ConsumerOptions(
        strategy=own_delays if retry is None else as_strategy(retry),
        dead_on=dead_on_errors(dead_on),
        timeout=None if timeout is None else positive_time("timeout", timeout),
        pausing=pausing(pause_on_errors(pause_on), pause_after, pause_for),
    )


def positive_time(name: str, value: Time, *, most: timedelta = LONGEST_TIME, because: str = "") -> timedelta:
    """A time that is longer than zero, and not absurd."""
    try:
        time = as_delay(value)
    except DurationError as error:
        raise DurationError(f"{name}: {error}") from None
    return seconds(name, time, most=most, because=because)


def dead_on_errors(value: Errors) -> tuple[type[BaseException], ...]:
    """The exceptions that are permanent. Those with which a handler chooses the outcome itself cannot be among them."""
    return _error_types("dead_on", value, refused=(Reject, RetryAfter))


def pause_on_errors(value: Errors) -> tuple[type[BaseException], ...]:
    """The exceptions that say that something is away. `RetryAfter` may be one of them, `Reject` says nothing of the kind."""
    return _error_types("pause_on", value, refused=(Reject,))


def pausing(kinds: tuple[type[BaseException], ...], failures: int, pause: Time) -> Pausing | None:
    """The rule that three options make together; None without `pause_on`, and then the others must not be given."""
    because = "nothing is handled meanwhile, and no success can end it sooner"
    length = positive_time("pause_for", pause, most=LONGEST_PAUSE, because=because)
    rule = Pausing(kinds=kinds, failures=at_least_one("pause_after", failures), pause=length)
    if kinds:
        return rule
    if (rule.failures, rule.pause) != (PAUSE_AFTER, as_delay(PAUSE_FOR)):
        raise ConfigurationError("pause_after and pause_for say nothing without pause_on: name the exceptions to pause on")
    return None


def _error_types(name: str, value: Errors, *, refused: tuple[type[BaseException], ...]) -> tuple[type[BaseException], ...]:
    types = (value,) if isinstance(value, type) else tuple(value)
    for type_ in types:
        if not isinstance(type_, type) or not issubclass(type_, BaseException):
            raise ConfigurationError(f"{name} takes types of exceptions, such as (ConnectionError,), not {type_!r}")
        if issubclass(type_, _NEVER_FAILURES):
            raise ConfigurationError(f"{name} cannot take {type_.__name__}, which ends more than an attempt")
        if issubclass(type_, refused):
            raise ConfigurationError(f"{name} cannot take {type_.__name__}, with which a handler chooses the outcome itself")
    return types


SHORT_STRING_LIMIT = 255
"""Longest queue name and binding key, in bytes: what AMQP allows."""
QUEUE_LIMIT = SHORT_STRING_LIMIT - len(".dlq")


class _Wrapped:
    """Leads introspection from a consumer to its callback; the class has none, so that its own signature is seen."""

    def __get__(self, consumer: "Consumer | None", _: type) -> Callable[..., Any]:
        if consumer is None:
            raise AttributeError("__wrapped__")
        return consumer.callback


@dataclass(frozen=True, slots=True)
class Consumer:
    """A callback, and the messages that it wants. It can still be called as the callback itself, and workers may share it.

    `binding_key` is a topic pattern: `*` stands for one word, `#` for any number. `queue` "" names the queue after the
    callback, `module.qualname`. `retry_delays` None takes the worker's; otherwise durations (`"1m30s"`) or seconds, `()` for
    no retry. Instead of them, `retry` is one of the strategies of `outbox.retry`, or a callable of the attempt's number and the
    exception that returns a delay, or None for no more. A message with which more than `max_deliveries` workers died runs alone
    once more, and is a dead letter if a worker dies again.

    An exception of a type in `dead_on` makes a dead letter at once, as `Reject` does. A callback that runs for longer than
    `timeout` is cancelled and has failed; it must be async. After `pause_after` failures of types in `pause_on`, without a
    success between them, nothing is handled for `pause_for`; then one message is, whose success ends the pause and whose
    failure begins another. Subclasses count, and so does a group of exceptions that holds one.

    With `ordered` messages of one ordering key are handled one after another, in the order in which they were sent; one that
    fails waits for its next attempt in flight, and its successors with it. Messages of different keys, or without one, are
    handled in parallel.

    With `inbox` each message is handled once in effect: a mark of it, what the callback writes through `session` or
    `connection`, and what it publishes through `publisher`, are committed together, and a message whose mark is there already
    is done without a call. With `batch` the callback takes lists: of the bodies that have arrived when it is free, up to the
    prefetch count, and of their routing keys, tracking ids and so on; if it fails, they are handled one by one.

    Raises `SignatureError` for a callback that cannot be called with a message, `ConfigurationError` for the rest.
    """

    binding_key: str
    callback: Callable[..., Any]
    queue: str = ""
    retry_delays: Sequence[Time] | None = None
    retry: Strategy | Choose | None = field(default=None, kw_only=True)
    dead_on: Errors = field(default=(), kw_only=True)
    timeout: Time | None = field(default=None, kw_only=True)
    pause_on: Errors = field(default=(), kw_only=True)
    pause_after: int = field(default=PAUSE_AFTER, kw_only=True)
    pause_for: Time = field(default=PAUSE_FOR, kw_only=True)
    ordered: bool = field(default=False, kw_only=True)
    max_deliveries: int = field(default=10, kw_only=True)
    inbox: bool = field(default=False, kw_only=True)
    batch: bool = field(default=False, kw_only=True)
    index_keys: Sequence[str] | None = field(default=None, kw_only=True)
    plan: CallPlan = field(init=False, repr=False, compare=False)
    terms: ConsumerOptions = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.callback, str) and callable(self.queue):  # the predecessor's order: binding key, queue, callback
            self._set(callback=self.queue, queue=self.callback)
        callback = self.callback.callback if isinstance(self.callback, Consumer) else self.callback
        on_terms = terms(
            retry_delays=self.retry_delays,
            retry=self.retry,
            dead_on=self.dead_on,
            timeout=self.timeout,
            pause_on=self.pause_on,
            pause_after=self.pause_after,
            pause_for=self.pause_for,
        )
        self._set(
            binding_key=_short_string("binding_key", self.binding_key, SHORT_STRING_LIMIT),
            callback=callback,
            queue=_short_string("queue", self.queue or queue_of(callback), QUEUE_LIMIT),
            retry_delays=None if self.retry_delays is None else as_delays(self.retry_delays),
            max_deliveries=at_least_one("max_deliveries", self.max_deliveries),
            plan=plan_call(callback, batch=self.batch),
            terms=on_terms,
            index_keys=None if self.index_keys is None else IndexKeys.of(self.index_keys).paths,
            dead_on=on_terms.dead_on,
            timeout=on_terms.timeout,
            pause_on=on_terms.pause_on,
            pause_for=as_delay(self.pause_for),
        )
        # Options that are right one by one and make no sense together.
        if on_terms.timeout is not None and not self.plan.is_async:
            raise ConfigurationError(
                f"the callback of {self.queue} is not async: it runs in a thread, which no timeout can stop. "
                f"Write async def, or leave timeout out"
            )
        if self.ordered and self.batch:
            raise ConfigurationError(
                f"the consumer of {self.queue} is ordered, so that its messages are handled one after another: "
                f"leave out batch, or ordered"
            )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the callback."""
        return self.callback(*args, **kwargs)

    def strategy(self, default: Sequence[timedelta]) -> Strategy:
        """How its retries are spaced: its own strategy, or else the delays in `default`."""
        return self.terms.strategy or Delays(tuple(default))

    __wrapped__ = _Wrapped()

    def _set(self, **values: object) -> None:
        """The values as given take their final form here, once; for all others it is frozen."""
        for name, value in values.items():
            object.__setattr__(self, name, value)


def consume(
    binding_key: str,
    queue: str = "",
    retry_delays: Sequence[Time] | None = None,
    *,
    retry: Strategy | Choose | None = None,
    dead_on: Errors = (),
    timeout: Time | None = None,
    pause_on: Errors = (),
    pause_after: int = PAUSE_AFTER,
    pause_for: Time = PAUSE_FOR,
    ordered: bool = False,
    max_deliveries: int = 10,
    inbox: bool = False,
    batch: bool = False,
    index_keys: Sequence[str] | None = None,
) -> Callable[[Callable[..., Any]], Consumer]:
    """Makes the decorated callback a `Consumer`; the arguments are those of `Consumer`."""

    def decorate(callback: Callable[..., Any]) -> Consumer:
        return Consumer(
            binding_key,
            callback,
            queue,
            retry_delays,
            retry=retry,
            dead_on=dead_on,
            timeout=timeout,
            pause_on=pause_on,
            pause_after=pause_after,
            pause_for=pause_for,
            ordered=ordered,
            max_deliveries=max_deliveries,
            inbox=inbox,
            batch=batch,
            index_keys=index_keys,
        )

    return decorate


def queue_of(callback: Callable[..., Any]) -> str:
    """The queue named after a callback: `module.qualname`, without the `<>` of `<locals>` and `<lambda>`."""
    named: Any = callback
    while isinstance(named, partial):
        named = named.func
    if not hasattr(named, "__qualname__"):
        named = type(named)
    return f"{named.__module__}.{named.__qualname__}".replace("<", "").replace(">", "")


def _short_string(name: str, value: object, limit: int) -> str:
    if not isinstance(value, str) or not value or "\0" in value or len(value.encode()) > limit:
        raise ConfigurationError(f"{name} must be 1 to {limit} bytes of text, not {value!r}")
    return value


LARGEST_SCHEMA = 32_768
"""Characters of a body's JSON schema that are reported; a larger one is left out."""


def described(
    consumers: Sequence[Consumer], *, retry_delays: Sequence[timedelta], prefetch_count: int
) -> list[Mapping[str, Any]]:
    """Each consumer as it runs at a worker with these defaults."""
    descriptions: list[Mapping[str, Any]] = []
    for consumer in consumers:
        schema = body_schema(consumer.plan.body_type)
        strategy, timeout = consumer.strategy(retry_delays), consumer.terms.timeout
        descriptions.append(
            {
                "queue": consumer.queue,
                "handler": queue_of(consumer.callback),
                "binding_key": consumer.binding_key,
                # The delays that are known beforehand, and whether there may be others.
                "retry": {
                    "delays_seconds": [delay.total_seconds() for delay in strategy.announced],
                    "computed": not isinstance(strategy, Delays),
                },
                "timeout_seconds": None if timeout is None else timeout.total_seconds(),
                "prefetch_count": prefetch_count,
                "max_deliveries": consumer.max_deliveries,
                "ordered": consumer.ordered,
                "inbox": consumer.inbox,
                "batch": consumer.batch,
                **({} if schema is None else {"body": schema}),
            }
        )
    return descriptions


def body_schema(body_type: Any) -> Mapping[str, Any] | None:
    """The JSON schema of a pydantic model; None for what is not one, and for what is too large or has none."""
    if not (isinstance(body_type, type) and issubclass(body_type, BaseModel)):
        return None
    try:
        schema = body_type.model_json_schema()
        return schema if len(json.dumps(schema)) <= LARGEST_SCHEMA else None
    except (PydanticUserError, PydanticInvalidForJsonSchema, PydanticSchemaGenerationError, TypeError, ValueError):
        return None
