"""How a consumer's callback is called with a message: worked out from its signature once, cheap for each message."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter
from typing import Any, NamedTuple, get_args, get_origin

from outbox.core.message import Message
from outbox.engine.annotations import resolved, routine_of, signature_of
from outbox.engine.bodies import Decode, decoder_for
from outbox.errors import SignatureError
from outbox.ports import Delivery


class Inputs(NamedTuple):
    """All that the arguments of one call are taken from."""

    delivery: Delivery
    message: Message
    body: object
    resources: Mapping[str, object]


class BatchInputs(NamedTuple):
    """All that the arguments of one call with several messages are taken from."""

    each: Sequence[Inputs]
    resources: Mapping[str, object]


Supply = Callable[[Any], object]
"""Takes one argument out of `Inputs`, or out of `BatchInputs`."""

FROM_DELIVERY: Mapping[str, Supply] = {
    "routing_key": lambda inputs: inputs.message.routing_key,
    "message": lambda inputs: inputs.delivery.incoming,
    "tracking_ids": lambda inputs: inputs.message.tracking_ids,
    "attempt_count": lambda inputs: inputs.delivery.attempt,
}
"""Parameters that every delivery can supply."""

FROM_TRANSACTION: Mapping[str, Supply] = {
    "session": lambda inputs: inputs.resources["session"],
    "connection": lambda inputs: inputs.resources["connection"],
    "publisher": lambda inputs: inputs.resources["publisher"],
}
"""Parameters that need a database: all of one transaction, committed before the message is settled."""

_INJECTED = {**FROM_DELIVERY, **FROM_TRANSACTION}


def _list_of(supply: Supply) -> Supply:
    return lambda batch: [supply(inputs) for inputs in batch.each]


_INJECTED_IN_BATCHES = {**{name: _list_of(supply) for name, supply in FROM_DELIVERY.items()}, **FROM_TRANSACTION}


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPlan:
    """What a callback needs, and how to give it that.

    `resources` names what it needs of a transaction. A callback that is not async is to be called in a thread. With `batch` it
    is called with `BatchInputs`; `decode` and `body_type` are for one body all the same.
    """

    callback: Callable[..., Any]
    decode: Decode
    body_type: Any
    is_async: bool
    batch: bool
    resources: frozenset[str]
    positional: Sequence[Supply]
    named: Sequence[tuple[str, Supply]]

    def call(self, inputs: Inputs | BatchInputs) -> Any:
        """Calls the callback; what an async one returns is still to be awaited."""
        return self.callback(
            *[supply(inputs) for supply in self.positional], **{name: supply(inputs) for name, supply in self.named}
        )


def plan_call(callback: Callable[..., Any], *, batch: bool = False) -> CallPlan:
    """How to call `callback`, with one message or with a `batch` of them.

    Raises `SignatureError`, saying what to write, if it cannot be called so.
    """
    _require_callable(callback)
    is_async = _is_async(callback)
    parameters = _parameters(callback)
    body = _body_parameter(callback, parameters)
    resources = frozenset(parameter.name for parameter in parameters if parameter.name in FROM_TRANSACTION)
    if resources and not is_async:
        names = ", ".join(sorted(resources))
        raise SignatureError(f"{_name(callback)} takes {names}, which only an async callback can use: write async def")
    positional, named = _arranged(callback, parameters, body, batch=batch)
    annotation = _annotation(callback, body)
    body_type = _item_of(callback, annotation) if batch else annotation
    return CallPlan(
        callback=callback,
        decode=_decoder(callback, body, body_type),
        body_type=body_type,
        is_async=is_async,
        batch=batch,
        resources=resources,
        positional=positional,
        named=named,
    )


def _require_callable(callback: object) -> None:
    if not callable(callback) or isinstance(callback, type):
        raise SignatureError(f"a consumer's callback is a function or a callable object, not {callback!r}")
    routine = routine_of(callback)
    if inspect.isgeneratorfunction(routine) or inspect.isasyncgenfunction(routine):
        raise SignatureError(f"{_name(callback)} is a generator, so calling it would do nothing: write async def without yield")


def _is_async(callback: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(callback) or inspect.iscoroutinefunction(routine_of(callback))


def _parameters(callback: Callable[..., Any]) -> list[Parameter]:
    try:
        signature = signature_of(callback)
    except ValueError as error:
        raise SignatureError(f"{_name(callback)} does not tell its parameters: wrap it in a function ({_advice()})") from error
    variable = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    return [parameter for parameter in signature.parameters.values() if parameter.kind not in variable]


def _body_parameter(callback: Callable[..., Any], parameters: Iterable[Parameter]) -> Parameter:
    """The one parameter that nothing else supplies; one without a default goes before those that have one."""
    others = [parameter for parameter in parameters if parameter.name not in _INJECTED]
    required = [parameter for parameter in others if parameter.default is Parameter.empty]
    candidates = required or others
    if len(candidates) == 1:
        return candidates[0]
    if not candidates:
        raise SignatureError(f"{_name(callback)} takes no body: {_advice()}")
    names = ", ".join(parameter.name for parameter in candidates)
    raise SignatureError(f"{_name(callback)} has {len(candidates)} parameters for one body ({names}): {_advice()}")


def _annotation(callback: Callable[..., Any], body: Parameter) -> Any:
    try:
        annotation = resolved(body.annotation, callback)
    except NameError as error:
        raise SignatureError(
            f"the annotation of {body.name} in {_name(callback)} names {error.name}, which is not there at run time: "
            f"import it outside of `if TYPE_CHECKING`, before the consumer is built"
        ) from error
    except (TypeError, SyntaxError) as error:
        raise SignatureError(f"the annotation of {body.name} in {_name(callback)} is no type: {error}") from error
    return Any if annotation is Parameter.empty else annotation


def _decoder(callback: Callable[..., Any], body: Parameter, body_type: Any) -> Decode:
    try:
        return decoder_for(body_type)
    except TypeError as error:
        raise SignatureError(
            f"{body.name} of {_name(callback)} is annotated with {body_type!r}, which no body can be decoded to: {error}. "
            f"Annotate it with a pydantic model, a type that pydantic knows, bytes, or nothing"
        ) from error


def _item_of(callback: Callable[..., Any], annotation: Any) -> Any:
    """What a list of bodies holds."""
    if annotation in (Any, list, Sequence):
        return Any
    arguments = get_args(annotation)
    if get_origin(annotation) in (list, Sequence) and len(arguments) == 1:
        return arguments[0]
    raise SignatureError(
        f"{_name(callback)} takes a batch, but its body is {annotation!r}: annotate it with a list, such as "
        f"async def handle(orders: list[Order])"
    )


def _arranged(
    callback: Callable[..., Any], parameters: Iterable[Parameter], body: Parameter, *, batch: bool
) -> tuple[tuple[Supply, ...], tuple[tuple[str, Supply], ...]]:
    """By position as far as possible, because decorators may call the body another name; by name after the first gap."""
    positional: list[Supply] = []
    named: list[tuple[str, Supply]] = []
    gap = False
    injected = _INJECTED_IN_BATCHES if batch else _INJECTED
    the_body = _list_of(_the_body) if batch else _the_body
    for parameter in parameters:
        supply = the_body if parameter is body else injected.get(parameter.name)
        if supply is None:
            gap = True
        elif parameter.kind is Parameter.KEYWORD_ONLY or (gap and parameter.kind is not Parameter.POSITIONAL_ONLY):
            named.append((parameter.name, supply))
        elif gap:
            raise SignatureError(f"{_name(callback)} cannot be given {parameter.name}, which follows a positional default")
        else:
            positional.append(supply)
    return tuple(positional), tuple(named)


def _the_body(inputs: Inputs) -> object:
    return inputs.body


def _advice() -> str:
    return (
        f"write one parameter for the body, and beside it any of {', '.join(_INJECTED)}, "
        "such as async def handle(order: Order, attempt_count: int)"
    )


def _name(callback: object) -> str:
    return getattr(callback, "__qualname__", None) or repr(callback)
