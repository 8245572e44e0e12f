"""Consumers: valid callbacks, their arguments, and the errors for invalid ones."""

import asyncio
import dataclasses
import functools
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any
from uuid import UUID

import pytest
from pydantic import BaseModel, Field

from outbox import Consumer, Reject, RetryAfter, consume, get_tracking_ids
from outbox.contracts import Event
from outbox.errors import ConfigurationError, DurationError, SignatureError
from tests.worker import postponed
from tests.worker.support import handled


class Order(BaseModel):
    id: int


@dataclass
class Parcel:
    weight: float


@consume("order.*")
async def placed(order: Order) -> Order:
    return order


# --- names and settings ------------------------------------------------------------------------------------------------


async def test_a_decorated_function_can_still_be_called() -> None:
    assert await placed(Order(id=1)) == Order(id=1)


def test_a_queue_is_named_after_its_callback() -> None:
    async def local(order: Order) -> None: ...

    class Handler:
        async def __call__(self, order: Order) -> None: ...

        async def method(self, order: Order) -> None: ...

    here = "tests.worker.test_consumers.test_a_queue_is_named_after_its_callback.locals"
    assert placed.queue == "tests.worker.test_consumers.placed"
    assert Consumer("#", local).queue == f"{here}.local"
    assert Consumer("#", lambda order: None).queue == f"{here}.lambda"
    assert Consumer("#", Handler()).queue == f"{here}.Handler"
    assert Consumer("#", Handler().method).queue == f"{here}.Handler.method"
    assert Consumer("#", functools.partial(local)).queue == f"{here}.local"
    assert Consumer("#", local, "mail").queue == "mail"


def test_a_consumer_cannot_be_changed_and_copies_can_differ() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        placed.queue = "other"  # type: ignore[misc]
    assert dataclasses.replace(placed, queue="other").queue == "other"
    assert placed.queue == "tests.worker.test_consumers.placed"


def test_equal_consumers_are_equal() -> None:
    assert Consumer("order.*", placed.callback) == placed == Consumer("order.*", placed)
    assert hash(Consumer("order.*", placed.callback)) == hash(placed)


def test_retry_delays_are_durations_or_seconds() -> None:
    delays = Consumer("#", placed, retry_delays=("500ms", 60, timedelta(minutes=5))).strategy(()).announced
    assert delays == (timedelta(milliseconds=500), timedelta(seconds=60), timedelta(minutes=5))
    assert Consumer("#", placed).strategy((timedelta(seconds=1),)).announced == (timedelta(seconds=1),)
    assert Consumer("#", placed, retry_delays=()).strategy((timedelta(seconds=1),)).announced == ()
    for wrong in (("1h",), ("-1s",), "1s", (-1,)):
        with pytest.raises(DurationError):
            Consumer("#", placed, retry_delays=wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        *({"binding_key": ""}, {"binding_key": "x" * 256}, {"binding_key": "\ud800"}),
        *({"queue": "x" * 252}, {"queue": "ż" * 126}, {"queue": "nul\0"}, {"queue": "\ud800"}),
    ],
)
def test_names_that_no_broker_takes_are_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="bytes of text"):
        Consumer(**{"binding_key": "#", "callback": placed, **wrong})  # type: ignore[arg-type]


def test_consume_without_a_binding_key_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r'needs a binding key: write @consume\("order\.placed"\)'):
        consume(placed)  # type: ignore[arg-type]


def test_what_is_no_event_is_refused_as_one() -> None:
    with pytest.raises(ConfigurationError, match=r"event must be an outbox\.contracts\.Event, not 'order\.placed'"):
        Consumer("order.placed", placed, event="order.placed")  # type: ignore[arg-type]


def test_types_of_errors_are_not_names() -> None:
    with pytest.raises(ConfigurationError, match=r"dead_on must be exception types, .* not 'ValueError'"):
        Consumer("#", placed, dead_on="ValueError")  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, None])
def test_max_deliveries_is_a_whole_number_from_one(wrong: object) -> None:
    with pytest.raises(ConfigurationError, match="max_deliveries"):
        Consumer("#", placed, max_deliveries=wrong)  # type: ignore[arg-type]


# --- signatures --------------------------------------------------------------------------------------------------------


async def no_body(routing_key: str) -> None: ...
async def two_bodies(order: Order, parcel: Parcel) -> None: ...
async def only_variable(*args: object, **kwargs: object) -> None: ...
async def generating(order: Order):  # type: ignore[no-untyped-def]
    yield order


def sync_generating(order: Order):  # type: ignore[no-untyped-def]
    yield order


def sync_with_session(order: Order, session: object) -> None: ...


class Methods:
    async def of_a_class(self, order: Order) -> None: ...


@pytest.mark.parametrize(
    ("callback", "says"),
    [
        (no_body, "no_body takes no body: write one parameter for the body"),
        (two_bodies, r"two_bodies has 2 parameters for one body \(order, parcel\)"),
        (only_variable, "only_variable takes no body"),
        (generating, "is a generator"),
        (sync_generating, "is a generator"),
        (sync_with_session, "takes session, which only async callbacks can use: write async def"),
        (Methods.of_a_class, r"\(self, order\)"),
        (Order, "a function or a callable object"),
        ("order", "a function or a callable object"),
        (postponed.hidden, "names Hidden, which is not defined at run time"),
    ],
)
def test_a_callback_that_cannot_be_called_with_a_message_fails_when_the_consumer_is_built(callback: Any, says: str) -> None:
    with pytest.raises(SignatureError, match=says):
        Consumer("#", callback)


async def test_parameters_with_defaults_that_nothing_supplies_keep_them() -> None:
    seen: list[object] = []

    async def handle(order: Order, limit: int = 3, *, attempt_count: int, note: str = "none") -> None:
        seen.extend([order.id, limit, attempt_count, note])

    await handled(Consumer("order.*", handle), b'{"id": 7}')
    assert seen == [7, 3, 1, "none"]


async def test_parameters_may_be_positional_only_keyword_only_and_in_any_order() -> None:
    seen: list[object] = []

    async def handle(routing_key: str, order: Order, /, attempt_count: int, *, tracking_ids: object) -> None:
        seen.extend([routing_key, order.id, attempt_count, tracking_ids])

    [sent] = await handled(Consumer("order.*", handle), b'{"id": 7}')
    assert seen == ["order.placed", 7, 1, sent.tracking_ids]


# --- kinds of callbacks ------------------------------------------------------------------------------------------------


async def test_methods_partials_callable_objects_and_wrapped_functions_work() -> None:
    seen: list[object] = []

    class Handler:
        async def __call__(self, order: Order) -> None:
            seen.append(("object", order.id))

        async def method(self, order: Order) -> None:
            seen.append(("method", order.id))

        def sync(self, order: Order) -> None:
            seen.append(("sync", order.id))

    async def tagged(tag: str, order: Order, *, more: str) -> None:
        seen.append((tag, order.id, more))

    def traced(function: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
        @functools.wraps(function)
        async def wrapper(*args: Any, **kwargs: Any) -> None:
            await function(*args, **kwargs)

        return wrapper

    def renaming(function: Callable[[Order], Awaitable[None]]) -> Callable[..., Awaitable[None]]:
        @functools.wraps(function)
        def wrapper(event: Order) -> Awaitable[None]:
            return function(event)

        return wrapper

    handler = Handler()
    callbacks: list[Callable[..., Any]] = [
        handler,
        handler.method,
        handler.sync,
        functools.partial(tagged, "partial", more="m"),
        functools.partial(handler),
        traced(handler.method),
        renaming(handler.method),
    ]
    for callback in callbacks:
        await handled(Consumer("order.*", callback, "mail"), b'{"id": 7}')
    assert seen == [
        ("object", 7),
        ("method", 7),
        ("sync", 7),
        ("partial", 7, "m"),
        ("object", 7),
        ("method", 7),
        ("method", 7),
    ]


def unawaited(callback: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """A decorator that forgets to await what it decorates."""

    @functools.wraps(callback)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        return callback(*args, **kwargs)

    return wrapper


def called_in_a_thread(callback: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(callback)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return callback(*args, **kwargs)

    return wrapper


@pytest.mark.parametrize("options", [{}, {"batch": True}, {"timeout": "20s"}, {"inbox": True}, {"batch": True, "inbox": True}])
async def test_a_handler_that_returns_what_nothing_runs_has_failed(options: dict[str, Any], database: str) -> None:
    async def handle(orders: list[Any]) -> None: ...

    consumer = Consumer("order.*", unawaited(handle), "mail", retry_delays=(), **options)
    with pytest.raises(AssertionError, match=r"SignatureError: the handler returned coroutine '.*handle', which nothing runs"):
        await handled(consumer, b"[7]", b"[8]", db_engine_url=database)


@pytest.mark.parametrize("callback", [generating, sync_generating])
async def test_a_generator_that_a_decorator_hides_has_failed(callback: Callable[..., Any]) -> None:
    consumer = Consumer("order.*", called_in_a_thread(callback), "mail", retry_delays=())
    with pytest.raises(AssertionError, match=r"SignatureError: the handler returned .*generator '.*generating'"):
        await handled(consumer, b'{"id": 7}')


tenant: ContextVar[str] = ContextVar("tenant", default="none")


async def test_a_sync_callback_runs_in_a_thread_of_the_worker_with_the_chain_of_its_message() -> None:
    seen: list[object] = []

    def handle(body: bytes) -> None:
        seen.extend([threading.current_thread() is threading.main_thread(), get_tracking_ids()])
        tenant.set("acme")

    [sent] = await handled(Consumer("order.*", handle), b"{}")
    assert seen == [False, sent.tracking_ids]
    assert tenant.get() == "none"


async def test_sync_callbacks_run_in_parallel_up_to_the_prefetch_count() -> None:
    together = threading.Barrier(4, timeout=60)

    def handle(body: bytes) -> None:
        together.wait()

    await handled(Consumer("order.*", handle), *[b"{}"] * 8, prefetch_count=4)


# --- bodies ------------------------------------------------------------------------------------------------------------


class Stranger:
    """A class that pydantic does not support."""


NOT_JSON = b"\xff\x00"


@pytest.mark.parametrize(
    ("annotation", "body", "value"),
    [
        (Order, b'{"id": 7}', Order(id=7)),
        (bytes, b'{"id": 7}', b'{"id": 7}'),
        (bytes, NOT_JSON, NOT_JSON),
        (None, b'{"id": 7}', {"id": 7}),
        (None, NOT_JSON, NOT_JSON),
        (None, b"", b""),
        (Any, b"[1]", [1]),
        (object, b"3", 3),
        (dict, b'{"id": 7}', {"id": 7}),
        (dict[str, Any], b'{"id": 7}', {"id": 7}),
        (dict[str, int], b'{"id": 7}', {"id": 7}),
        (Mapping[str, int] | None, b"null", None),
        (str, b'"text"', "text"),
        (str | bytes, NOT_JSON, NOT_JSON),
        (Order | None, b'{"id": 7}', Order(id=7)),
        (Order | None, b"null", None),
        (Order | bytes, b'{"id": 7}', Order(id=7)),
        (Order | bytes, NOT_JSON, NOT_JSON),
        (list[Order], b'[{"id": 7}]', [Order(id=7)]),
        (Parcel, b'{"weight": 1.5}', Parcel(1.5)),
        (UUID, b'"12345678-1234-5678-1234-567812345678"', UUID("12345678-1234-5678-1234-567812345678")),
        (Annotated[int, Field(gt=3)], b"4", 4),
        (Annotated[bytes, "as it is"], b"4", b"4"),
    ],
)
async def test_a_body_is_decoded_by_its_annotation(annotation: Any, body: bytes, value: object) -> None:
    seen: list[object] = []

    async def handle(body) -> None:  # type: ignore[no-untyped-def]
        seen.append(body)

    if annotation is not None:
        handle.__annotations__["body"] = annotation
    await handled(Consumer("order.*", handle), body)
    assert seen == [value]


@pytest.mark.parametrize(
    ("annotation", "body"),
    [
        (Order, NOT_JSON),
        (Order, b'{"id": "x"}'),
        (list[Order], b"{}"),
        (Annotated[int, Field(gt=3)], b"1"),
        (Order | None, b"3"),
        (dict, NOT_JSON),
        (dict, b"[]"),
        (dict, b""),
        (dict[str, int], b'{"id": "seven"}'),
        (list, b"{}"),
        (str, b"7"),
        (str, NOT_JSON),
        (int, b'"seven"'),
        (int, b"7.5"),
        (bool | None, b"[]"),
    ],
)
def test_a_body_that_does_not_fit_is_refused(annotation: Any, body: bytes) -> None:
    async def handle(body) -> None: ...  # type: ignore[no-untyped-def]

    handle.__annotations__["body"] = annotation
    with pytest.raises(ValueError, match="validation error"):
        Consumer("#", handle).plan.decode(body)


def test_arguments_may_be_positional_as_in_the_predecessor() -> None:
    def handle(body: bytes) -> None: ...

    made, decorated = Consumer("order.*", "mail", handle), consume("order.*", "mail", ("1s",))(handle)  # type: ignore[arg-type]
    assert (made.queue, made.callback) == ("mail", handle)
    assert (decorated.queue, decorated.retry_delays) == ("mail", (timedelta(seconds=1),))


def test_a_class_that_pydantic_does_not_support_is_refused_when_the_consumer_is_created() -> None:
    async def handle(body: Stranger) -> None: ...

    with pytest.raises(
        SignatureError, match=r"Stranger.*which a body cannot be decoded to.* schema for <class '.*Stranger'>\. A"
    ):
        Consumer("#", handle)


def test_a_model_without_fields_is_refused_unless_an_event_has_the_model() -> None:
    async def handle(body: BaseModel) -> None: ...

    with pytest.raises(SignatureError, match=r"handle is annotated with BaseModel, .*: annotate it with your model"):
        Consumer("#", handle)
    assert consume(Event("order.placed", Order))(handle).plan.body_type is Order


async def test_annotations_may_be_postponed_and_name_what_is_local() -> None:
    for consumer, seen in postponed.consumers():
        await handled(consumer, b'{"id": 7}')
        assert [type(value).__name__ for value in seen] == ["Local"]
    assert await postponed.module_level(postponed.Order(id=7)) == 7
    assert postponed.module_level.plan.decode(b'{"id": 7}') == postponed.Order(id=7)


# --- ends --------------------------------------------------------------------------------------------------------------


class Odd(BaseException):
    """An error that a library derives from `BaseException`, so that handlers do not catch it by accident."""


class Unspeakable(Exception):
    """An error without its attributes, such as one copied from another process."""

    def __str__(self) -> str:
        raise AttributeError("reason")


class RateLimitedError(RetryAfter):
    """A subclass that does not call the `__init__` of its base class, and has the delay as another value."""

    def __init__(self, **attributes: object) -> None:
        vars(self).update(attributes)


def unreadable_syntax_error() -> SyntaxError:
    """An error of a parser of templates, from which Python cannot make a traceback."""
    error = SyntaxError("line 5")
    error.text = 5  # type: ignore[assignment]
    return error


def nested(depth: int) -> Exception:
    error: Exception = ValueError("inside")
    for _ in range(depth):
        error = ExceptionGroup("around", [error])
    return error


@pytest.mark.parametrize(
    "error",
    [
        *(SystemExit(3), GeneratorExit(), Odd(), asyncio.CancelledError()),
        *(StopAsyncIteration(), pytest.fail.Exception("no"), Unspeakable()),
        *(RateLimitedError(), RateLimitedError(delay=5), RateLimitedError(delay=timedelta(-1))),
        *(unreadable_syntax_error(), nested(10_000)),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_any_error_of_a_handler_fails_its_message_only(error: BaseException) -> None:
    calls: list[int] = []

    async def handle(body: bytes, attempt_count: int) -> None:
        calls.append(attempt_count)
        if attempt_count == 1:
            raise error

    await handled(Consumer("order.*", handle, retry_delays=("0",), dead_on=KeyError), b"{}")
    assert calls == [1, 2]


@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit(), KeyboardInterrupt(), StopIteration(), ValueError()])
async def test_any_error_of_a_sync_handler_fails_its_message(error: BaseException) -> None:
    calls: list[int] = []

    def handle(body: bytes, attempt_count: int) -> None:
        calls.append(attempt_count)
        if attempt_count == 1:
            raise error

    await handled(Consumer("order.*", handle, retry_delays=("0",)), b"{}")
    assert calls == [1, 2]


def test_a_signal_of_a_handler_is_an_exception_with_its_reason() -> None:
    assert str(Reject("no such customer")) == "no such customer"
