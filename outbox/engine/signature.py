"""Reads a handler's signature once, then binds each message to its parameters."""

import inspect
import json
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import Parameter
from types import FrameType, FunctionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel, PydanticUserError, TypeAdapter

from outbox.core.message import Message
from outbox.errors import SignatureError
from outbox.ports import Delivery

EMPTY = inspect.Parameter.empty


def signature_of(callback: Callable[..., Any]) -> inspect.Signature:
    """Returns the signature of `callback` without evaluating its annotations."""
    # Annotations may name types that are only imported for type checkers.
    if sys.version_info >= (3, 14):
        import annotationlib

        return inspect.signature(callback, annotation_format=annotationlib.Format.FORWARDREF)
    return inspect.signature(callback)


def resolve_annotation(annotation: Any, callback: Callable[..., Any]) -> Any:
    """Returns the type that a parameter of `callback` is annotated with, evaluating a postponed annotation.

    Looks names up where the function was defined: in its module, in its closure, and among the locals of enclosing functions
    that are still running. Raises `NameError` for a name that none of them has.
    """
    if annotation is EMPTY or isinstance(annotation, type):
        return annotation
    # The function under partials, bound methods, decorators and callable objects.
    routine = inspect.unwrap(routine_of(inspect.unwrap(callback) if hasattr(callback, "__wrapped__") else callback))
    unbound = getattr(routine, "__func__", routine)
    function = unbound if isinstance(unbound, FunctionType) else None
    # A function with this annotation only: on the callback itself, any other annotation that cannot be evaluated would fail.
    probe = FunctionType((lambda: None).__code__, {})
    probe.__annotations__ = {"body": annotation}
    names = dict(_names_around(function)) if function is not None else {}
    module_names = function.__globals__ if function is not None else {}
    return typing.get_type_hints(probe, module_names, names, include_extras=True)["body"]


def routine_of(callback: Any) -> Any:
    """Returns the function that runs when `callback` is called: without partials, and `__call__` for a callable object."""
    while isinstance(callback, partial):
        callback = callback.func
    return callback if inspect.isroutine(callback) else type(callback).__call__


def _names_around(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yields the locals of running functions of its module, innermost last, then those of its closure."""
    frames: list[FrameType] = []
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_globals is function.__globals__ and frame.f_locals is not frame.f_globals:
            frames.append(frame)
        frame = frame.f_back
    for each in reversed(frames):
        yield from each.f_locals.items()
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # a variable without a value yet
            continue


Decode = Callable[[bytes], object]
"""Decodes a body. Raises ValueError (pydantic's ValidationError is one) if it does not match the type."""


def decoder_for(annotation: Any) -> Decode:
    """Returns a function that decodes a body for a parameter annotated with `annotation`.

    `bytes` get the body unchanged. `Any`, or no annotation, gets parsed JSON, or the bytes if they are not JSON. Pydantic
    validates all other types from JSON: models, `dict[str, int]`, `list[Order]`, `int | None`, dataclasses, `datetime`. A union
    with `bytes` gets the bytes if no other type matches. Raises `TypeError` for a type that pydantic cannot validate.
    """
    if annotation is bytes:
        return bytes  # bytes(body) is body
    if get_origin(annotation) is Annotated and get_args(annotation)[0] is bytes:
        return TypeAdapter(annotation).validate_python
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation.model_validate_json
    if annotation is Any or annotation is object:
        return _json_or_bytes
    takes_bytes, rest = False, annotation
    # Compare by identity: annotations need not be hashable, and may override equality.
    if get_origin(annotation) is Union or get_origin(annotation) is types.UnionType:
        others = [part for part in get_args(annotation) if part is not bytes]
        takes_bytes = len(others) < len(get_args(annotation))
        rest = Union[tuple(others)] if others else bytes  # noqa: UP007  built from a list
    try:
        validated = TypeAdapter(rest).validate_json
    except PydanticUserError as error:
        # Its first sentence. Not up to the first dot, which may be one within a name.
        raise TypeError(f"pydantic cannot validate it: {error.message.partition('. ')[0].rstrip('.')}") from error

    def decode_or_take(body: bytes) -> object:
        try:
            return validated(body)
        except ValueError:
            return body

    return decode_or_take if takes_bytes else validated


def _json_or_bytes(body: bytes) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body


class Inputs(NamedTuple):
    """The inputs that the arguments of a call are taken from."""

    delivery: Delivery
    message: Message
    body: object
    resources: Mapping[str, object]


class BatchInputs(NamedTuple):
    """The inputs that the arguments of a call with a batch are taken from."""

    each: Sequence[Inputs]
    resources: Mapping[str, object]


Supply = Callable[[Any], object]
"""Takes one argument from `Inputs` or `BatchInputs`."""

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
"""Parameters that need a database. They share one transaction, which is committed before the message is settled."""

_INJECTED = {**FROM_DELIVERY, **FROM_TRANSACTION}


def _list_of(supply: Supply) -> Supply:
    return lambda batch: [supply(inputs) for inputs in batch.each]


_INJECTED_IN_BATCHES = {**{name: _list_of(supply) for name, supply in FROM_DELIVERY.items()}, **FROM_TRANSACTION}


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPlan:
    """How to call a callback: its arguments, and the resources that it needs.

    `resources` names its parameters that need a transaction. A callback that is not async must be called in a thread. With
    `batch` it is called with `BatchInputs`; `decode` and `body_type` are still for a single body.
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
        """Calls the callback. The result of an async one has to be awaited."""
        return self.callback(
            *[supply(inputs) for supply in self.positional], **{name: supply(inputs) for name, supply in self.named}
        )


def plan_call(callback: Callable[..., Any], *, batch: bool = False) -> CallPlan:
    """Plans how to call `callback` with one message, or with a `batch`.

    Raises `SignatureError`, which says what to write instead, if it cannot be called with these.
    """
    if not callable(callback) or isinstance(callback, type):
        raise SignatureError(f"a consumer's callback must be a function or a callable object, not {callback!r}")
    routine = routine_of(callback)
    if inspect.isgeneratorfunction(routine) or inspect.isasyncgenfunction(routine):
        raise SignatureError(f"{_name(callback)} is a generator, so calling it would do nothing: write async def without yield")
    is_async = inspect.iscoroutinefunction(callback) or inspect.iscoroutinefunction(routine)
    try:
        signature = signature_of(callback)
    except ValueError as error:
        raise SignatureError(f"{_name(callback)} has no readable signature: wrap it in a function ({_advice()})") from error
    variable = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    parameters = [parameter for parameter in signature.parameters.values() if parameter.kind not in variable]
    body = _body_parameter(callback, parameters)
    resources = frozenset(parameter.name for parameter in parameters if parameter.name in FROM_TRANSACTION)
    if resources and not is_async:
        names = ", ".join(sorted(resources))
        raise SignatureError(f"{_name(callback)} takes {names}, which only async callbacks can use: write async def")
    positional, named = _bind_arguments(callback, parameters, body, batch=batch)
    body_type = _body_type(callback, body, batch=batch)
    try:
        decode = decoder_for(body_type)
    except TypeError as error:
        raise SignatureError(
            f"{body.name} of {_name(callback)} is annotated with {body_type!r}, which a body cannot be decoded to: {error}. "
            f"Annotate it with a pydantic model, another type that pydantic supports, bytes, or nothing"
        ) from error
    return CallPlan(
        callback=callback,
        decode=decode,
        body_type=body_type,
        is_async=is_async,
        batch=batch,
        resources=resources,
        positional=positional,
        named=named,
    )


def _body_parameter(callback: Callable[..., Any], parameters: Iterable[Parameter]) -> Parameter:
    """Finds the parameter for the body: the only one with an unknown name; of several, the only one without a default."""
    others = [parameter for parameter in parameters if parameter.name not in _INJECTED]
    required = [parameter for parameter in others if parameter.default is Parameter.empty]
    candidates = required or others
    if len(candidates) == 1:
        return candidates[0]
    if not candidates:
        raise SignatureError(f"{_name(callback)} takes no body: {_advice()}")
    names = ", ".join(parameter.name for parameter in candidates)
    raise SignatureError(f"{_name(callback)} has {len(candidates)} parameters for one body ({names}): {_advice()}")


def _body_type(callback: Callable[..., Any], body: Parameter, *, batch: bool) -> Any:
    """Returns the type of one body: the annotation, or for a batch the item type of the annotated list."""
    try:
        annotation = resolve_annotation(body.annotation, callback)
    except NameError as error:
        raise SignatureError(
            f"the annotation of {body.name} in {_name(callback)} names {error.name}, which is not defined at run time: "
            f"import it outside `if TYPE_CHECKING`, before the consumer is created"
        ) from error
    except (TypeError, SyntaxError) as error:
        raise SignatureError(f"the annotation of {body.name} in {_name(callback)} is not a type: {error}") from error
    if annotation is Parameter.empty:
        return Any
    if not batch:
        return annotation
    if annotation in (Any, list, Sequence):
        return Any
    arguments = get_args(annotation)
    if get_origin(annotation) in (list, Sequence) and len(arguments) == 1:
        return arguments[0]
    raise SignatureError(
        f"{_name(callback)} takes a batch, but its body is {annotation!r}: annotate it with a list, such as "
        f"async def handle(orders: list[Order])"
    )


def _bind_arguments(
    callback: Callable[..., Any], parameters: Iterable[Parameter], body: Parameter, *, batch: bool
) -> tuple[tuple[Supply, ...], tuple[tuple[str, Supply], ...]]:
    """Returns the positional and the named arguments."""
    # By position as far as possible, because a decorator's wrapper may use another name for the body.
    positional: list[Supply] = []
    named: list[tuple[str, Supply]] = []
    gap = False
    injected = _INJECTED_IN_BATCHES if batch else _INJECTED
    take_body = _list_of(_take_body) if batch else _take_body
    for parameter in parameters:
        supply = take_body if parameter is body else injected.get(parameter.name)
        if supply is None:
            gap = True
        elif parameter.kind is Parameter.KEYWORD_ONLY or (gap and parameter.kind is not Parameter.POSITIONAL_ONLY):
            named.append((parameter.name, supply))
        elif gap:
            raise SignatureError(f"{_name(callback)} cannot be given {parameter.name}, which follows a positional default")
        else:
            positional.append(supply)
    return tuple(positional), tuple(named)


def _take_body(inputs: Inputs) -> object:
    return inputs.body


def _advice() -> str:
    return (
        f"write one parameter for the body, and next to it any of {', '.join(_INJECTED)}, "
        "such as async def handle(order: Order, attempt_count: int)"
    )


def _name(callback: object) -> str:
    return getattr(callback, "__qualname__", None) or repr(callback)
