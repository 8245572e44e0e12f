"""Consumers: which messages a handler takes, through which queue, with which options."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Any

from pydantic import BaseModel, PydanticSchemaGenerationError
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError

from outbox.contracts import Event
from outbox.core.arguments import LONGEST_TIME, at_least_one, seconds
from outbox.core.duration import as_delay, as_delays
from outbox.engine.index_keys import IndexKeys
from outbox.engine.signature import CallPlan, plan_call
from outbox.errors import ConfigurationError, DurationError, Reject, RetryAfter, SignatureError
from outbox.retry import Choose, Delays, Strategy, as_strategy

PAUSE_AFTER = 5
PAUSE_FOR = "30s"
LONGEST_PAUSE = timedelta(days=1)
_NEVER_FAILURES = (KeyboardInterrupt,)
"""Exceptions that end the process and not just an attempt."""

Errors = type[BaseException] | Sequence[type[BaseException]]
Time = str | float | timedelta
"""A duration such as `"1m30s"`, seconds, or a timedelta."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pausing:
    """Pauses a consumer for `pause` after `failures` of these `kinds` without a success in between."""

    kinds: tuple[type[BaseException], ...]
    failures: int
    pause: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerOptions:
    """The parsed options of a consumer for failures and time.

    `strategy` None: use the worker's. `timeout` None: no limit. `pausing` None: never pause.
    """

    strategy: Strategy | None
    dead_on: tuple[type[BaseException], ...]
    timeout: timedelta | None
    pausing: Pausing | None

    @property
    def pause_on(self) -> tuple[type[BaseException], ...]:
        """The exceptions that count towards a pause."""
        return () if self.pausing is None else self.pausing.kinds


def parse_options(
    *,
    retry_delays: Sequence[Time] | None,
    retry: object,
    dead_on: Errors,
    timeout: Time | None,
    pause_on: Errors,
    pause_after: int,
    pause_for: Time,
) -> ConsumerOptions:
    """Parses the options. Raises `ConfigurationError` if one is invalid, or two contradict each other."""
    if retry is not None and retry_delays is not None:
        raise ConfigurationError("set retry or retry_delays, not both: retry=delays('1s', '1m') is retry_delays=('1s', '1m')")
    own_delays = None if retry_delays is None else Delays(as_delays(retry_delays))
    return ConsumerOptions(
        strategy=own_delays if retry is None else as_strategy(retry),
        dead_on=parse_dead_on(dead_on),
        timeout=None if timeout is None else parse_duration("timeout", timeout),
        pausing=parse_pausing(parse_pause_on(pause_on), pause_after, pause_for),
    )


def parse_duration(name: str, value: Time, *, most: timedelta = LONGEST_TIME, because: str = "") -> timedelta:
    """Parses a duration above zero and at most `most`. Raises `ConfigurationError` for any other value."""
    try:
        time = as_delay(value)
    except DurationError as error:
        raise DurationError(f"{name}: {error}") from None
    return seconds(name, time, most=most, because=because)


def parse_dead_on(value: Errors) -> tuple[type[BaseException], ...]:
    """Checks the exceptions that dead-letter at once. Refuses `Reject` and `RetryAfter`, which set the outcome themselves."""
    return _error_types("dead_on", value, refused=(Reject, RetryAfter))


def parse_pause_on(value: Errors) -> tuple[type[BaseException], ...]:
    """Checks the exceptions that mean that a dependency is unavailable. Allows `RetryAfter`, refuses `Reject`."""
    return _error_types("pause_on", value, refused=(Reject,))


def parse_pausing(kinds: tuple[type[BaseException], ...], failures: int, pause: Time) -> Pausing | None:
    """Combines the three options for pausing. Returns None without `pause_on`; the others must then be left out."""
    because = "no message is handled during a pause, and no success can end it early"
    length = parse_duration("pause_for", pause, most=LONGEST_PAUSE, because=because)
    rule = Pausing(kinds=kinds, failures=at_least_one("pause_after", failures), pause=length)
    if kinds:
        return rule
    if (rule.failures, rule.pause) != (PAUSE_AFTER, as_delay(PAUSE_FOR)):
        raise ConfigurationError("pause_after and pause_for need pause_on: name the exceptions to pause on")
    return None


def _error_types(name: str, value: Errors, *, refused: tuple[type[BaseException], ...]) -> tuple[type[BaseException], ...]:
    given: Iterable[Any] = value if isinstance(value, Iterable) and not isinstance(value, type | str) else (value,)
    types = tuple(given)
    for type_ in types:
        if not isinstance(type_, type) or not issubclass(type_, BaseException):
            raise ConfigurationError(f"{name} must be exception types, such as (ConnectionError,), not {type_!r}")
        if issubclass(type_, _NEVER_FAILURES):
            raise ConfigurationError(f"{name} must not contain {type_.__name__}, which ends the process")
        if issubclass(type_, refused):
            raise ConfigurationError(f"{name} must not contain {type_.__name__}: a handler raises it to choose the outcome")
    return types


SHORT_STRING_LIMIT = 255
"""Longest queue name and binding key, in bytes: the limit of AMQP."""
QUEUE_LIMIT = SHORT_STRING_LIMIT - len(".dlq")


class _Wrapped:
    """Lets `inspect` see the signature of a consumer's callback."""

    def __get__(self, consumer: "Consumer | None", _: type) -> Callable[..., Any]:
        # The class itself wraps nothing: with the attribute, `inspect` would not find the signature of Consumer().
        if consumer is None:
            raise AttributeError("__wrapped__")
        return consumer.callback


@dataclass(frozen=True, slots=True)
class Consumer:
    """A callback and the messages that it handles. Calling a consumer calls its callback. Workers may share a consumer.

    `binding_key` is a topic pattern: `*` matches one word, `#` any number of words. If `queue` is "", the queue is named after
    the callback, `module.qualname`. `retry_delays` are durations (`"1m30s"`) or seconds; `()` disables retries, and None uses
    the worker's delays. `retry` replaces them: a strategy of `outbox.retry`, or a callable that takes the number of the attempt
    and the exception and returns the delay, or None to stop retrying. After a message has crashed more than `max_deliveries`
    workers, it runs once more, alone. If that crashes a worker again, the message becomes a dead letter.

    An exception of a type in `dead_on` dead-letters the message at once, as `Reject` does. A callback that runs for longer than
    `timeout` is cancelled, and its attempt has failed; the callback must be async. After `pause_after` failures of types in
    `pause_on` without a success in between, the consumer handles nothing for `pause_for`. Then it handles one message: a
    success ends the pause, a failure begins another. Subclasses match, and so do exception groups that contain a match.

    With `ordered`, messages with the same ordering key are handled one after another, in the order in which they were sent. A
    message that fails stays in flight until its next attempt, and later messages of its key wait. Messages with different keys,
    or without one, are handled in parallel.

    With `inbox`, each message takes effect once: a mark for the message, the callback's writes through `session` or
    `connection`, and its messages published through `publisher` are committed together. A message that is already marked is
    settled without a call. With `batch`, the callback takes lists: all bodies that have arrived when it is free, up to the
    prefetch count, and their routing keys, tracking ids and so on. If a batch fails, its messages are handled one by one.

    With `event`, the binding key is the event's routing key, and the callback gets the event's model, whatever version a
    message has. A message of a newer version is a failed attempt, because a newer worker may be able to handle it.

    Raises `SignatureError` if the callback cannot be called with a message, and `ConfigurationError` for other invalid options.
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
    event: Event[Any] | None = field(default=None, kw_only=True)
    plan: CallPlan = field(init=False, repr=False, compare=False)
    options: ConsumerOptions = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # The predecessor's order of arguments: binding key, queue, callback.
        if isinstance(self.callback, str) and callable(self.queue):
            self._set(callback=self.queue, queue=self.callback)
        if self.event is not None and not isinstance(self.event, Event):
            raise ConfigurationError(f"event must be an outbox.contracts.Event, not {self.event!r:.80}")
        if self.event is not None and self.binding_key != self.event.routing_key:
            raise ConfigurationError(
                f"binding_key must be the routing key of the event, {self.event.routing_key!r}, not {self.binding_key!r}"
            )
        callback = self.callback.callback if isinstance(self.callback, Consumer) else self.callback
        options = parse_options(
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
            plan=_plan_of(callback, self.event, batch=self.batch),
            options=options,
            index_keys=None if self.index_keys is None else IndexKeys.of(self.index_keys).paths,
            dead_on=options.dead_on,
            timeout=options.timeout,
            pause_on=options.pause_on,
            pause_for=as_delay(self.pause_for),
        )
        # Options that are valid one by one, but not together.
        if options.timeout is not None and not self.plan.is_async:
            raise ConfigurationError(
                f"the callback of {self.queue} is not async: it runs in a thread, which a timeout cannot stop. "
                f"Write async def, or remove timeout"
            )
        if self.ordered and self.batch:
            raise ConfigurationError(
                f"the consumer of {self.queue} cannot have both ordered and batch: ordered messages are handled one by one. "
                f"Remove batch or ordered"
            )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the callback."""
        return self.callback(*args, **kwargs)

    def strategy(self, default: Sequence[timedelta]) -> Strategy:
        """Returns its own retry strategy, or else the delays in `default`."""
        return self.options.strategy or Delays(tuple(default))

    __wrapped__ = _Wrapped()

    def _set(self, **values: object) -> None:
        # The dataclass is frozen; only __post_init__ replaces values, by their parsed form.
        for name, value in values.items():
            object.__setattr__(self, name, value)


def consume(
    binding_key: str | Event[Any],
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
    """Decorator that turns a callback into a `Consumer`, with the same arguments.

    With an event in place of the binding key, the callback gets the event's model, whatever version a message has.
    """
    if not isinstance(binding_key, str | Event) and callable(binding_key):
        raise ConfigurationError('@consume needs a binding key: write @consume("order.placed")')
    event = binding_key if isinstance(binding_key, Event) else None

    def decorate(callback: Callable[..., Any]) -> Consumer:
        return Consumer(
            binding_key.routing_key if isinstance(binding_key, Event) else binding_key,
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
            event=event,
        )

    return decorate


def _plan_of(callback: Callable[..., Any], event: Event[Any] | None, *, batch: bool) -> CallPlan:
    """Plans the call. Raises if the event's model does not fit the callback, or if an upcaster is missing."""
    plan = plan_call(callback, batch=batch)
    if event is None:
        if plan.body_type is BaseModel:
            raise SignatureError(
                f"the body of {queue_of(callback)} is annotated with BaseModel, which has no fields: annotate it with your "
                "model, or with dict"
            )
        return plan
    event.check()
    if plan.body_type not in (Any, object) and not (
        isinstance(plan.body_type, type) and issubclass(event.model, plan.body_type)
    ):
        raise SignatureError(
            f"{queue_of(callback)} takes {plan.body_type!r}, but the body of {event.routing_key!r} is {event.model!r}: "
            f"annotate it with the model of the event"
        )
    return replace(plan, body_type=event.model)


def queue_of(callback: Callable[..., Any]) -> str:
    """Returns the default queue name of a callback: `module.qualname`, without the `<>` of `<locals>` and `<lambda>`."""
    named: Any = callback
    while isinstance(named, partial):
        named = named.func
    if not hasattr(named, "__qualname__"):
        named = type(named)
    return f"{named.__module__}.{named.__qualname__}".replace("<", "").replace(">", "")


def _short_string(name: str, value: object, limit: int) -> str:
    try:
        is_short = isinstance(value, str) and 0 < len(value.encode()) <= limit
    except UnicodeEncodeError:  # half of a surrogate pair
        is_short = False
    if not isinstance(value, str) or not is_short or "\0" in value:
        raise ConfigurationError(f"{name} must be 1 to {limit} bytes of text, not {value!r}")
    return value


LARGEST_SCHEMA = 32_768
"""Longest JSON schema of a body, in characters, that is reported. Larger ones are left out."""


def describe_consumers(
    consumers: Sequence[Consumer], *, retry_delays: Sequence[timedelta], prefetch_count: int
) -> list[Mapping[str, Any]]:
    """Describes each consumer as it runs in a worker with these defaults, for the admin API."""
    descriptions: list[Mapping[str, Any]] = []
    for consumer in consumers:
        schema, event = body_schema(consumer.plan.body_type), consumer.event
        strategy, timeout = consumer.strategy(retry_delays), consumer.options.timeout
        descriptions.append(
            {
                "queue": consumer.queue,
                "handler": queue_of(consumer.callback),
                "binding_key": consumer.binding_key,
                # `computed`: a strategy may also return delays that are not known in advance.
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
                **({} if event is None else {"event": event.versions}),
            }
        )
    return descriptions


def body_schema(body_type: Any) -> Mapping[str, Any] | None:
    """Returns the JSON schema of a pydantic model. None for other types, and if there is no schema or it is too large."""
    if not (isinstance(body_type, type) and issubclass(body_type, BaseModel)):
        return None
    try:
        schema = body_type.model_json_schema()
        return schema if len(json.dumps(schema)) <= LARGEST_SCHEMA else None
    except (PydanticUserError, PydanticInvalidForJsonSchema, PydanticSchemaGenerationError, TypeError, ValueError):
        return None
