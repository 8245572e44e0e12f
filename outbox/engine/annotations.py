"""What the annotation of one parameter means, however late it was to be evaluated."""

import inspect
import sys
import typing
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType, FunctionType
from typing import Any

EMPTY = inspect.Parameter.empty


def signature_of(callback: Callable[..., Any]) -> inspect.Signature:
    """The signature of `callback`, without evaluating annotations that may name what exists for type checkers only."""
    if sys.version_info >= (3, 14):
        import annotationlib

        return inspect.signature(callback, annotation_format=annotationlib.Format.FORWARDREF)
    return inspect.signature(callback)


def resolved(annotation: Any, callback: Callable[..., Any]) -> Any:
    """The type that `annotation` of a parameter of `callback` stands for.

    Names are looked up where the function was defined: in its module, its closure, and the functions around it that are
    still running, so that postponed annotations may name what is local. Raises `NameError` for a name found nowhere.
    """
    if annotation is EMPTY or isinstance(annotation, type):
        return annotation
    function = _function_in(callback)
    probe = FunctionType((lambda: None).__code__, {})
    probe.__annotations__ = {"body": annotation}
    names = dict(_names_around(function)) if function is not None else {}
    module_names = function.__globals__ if function is not None else {}
    return typing.get_type_hints(probe, module_names, names, include_extras=True)["body"]


def routine_of(callback: Any) -> Any:
    """What runs when `callback` is called: partials taken off, and for an object the `__call__` of its class."""
    while isinstance(callback, partial):
        callback = callback.func
    return callback if inspect.isroutine(callback) else type(callback).__call__


def _function_in(callback: Any) -> FunctionType | None:
    """The function under partials, bound methods, decorators and callable objects."""
    routine = inspect.unwrap(callback) if hasattr(callback, "__wrapped__") else callback
    routine = inspect.unwrap(routine_of(routine))
    function = getattr(routine, "__func__", routine)
    return function if isinstance(function, FunctionType) else None


def _names_around(function: FunctionType) -> Iterator[tuple[str, Any]]:
    for frame in reversed(list(_frames_of_same_module(function))):
        yield from frame.f_locals.items()
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # a variable that has no value yet
            continue


def _frames_of_same_module(function: FunctionType) -> Iterator[FrameType]:
    """The running functions of the module that `function` is from, innermost first; the module itself is not among them."""
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_globals is function.__globals__ and frame.f_locals is not frame.f_globals:
            yield frame
        frame = frame.f_back
