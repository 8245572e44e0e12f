"""Generate the API reference as Markdown from the signatures and docstrings of public names. Used by scripts/docs.py."""

import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

PLACE = "<!-- The reference is filled in here by `make docs`. -->"
"""The line of docs/api.md that the reference replaces."""

MODULES = {
    "outbox": None,
    "outbox.contracts": ("Event",),
    "outbox.asyncapi": ("asyncapi_document", "describe_contracts", "compare_documents", "Change"),
    "outbox.retry": ("delays", "constant", "linear", "exponential"),
    "outbox.errors": None,
    "outbox.fastapi": None,
    "outbox.admin": None,
    "outbox.dead_letters": None,
    "outbox.chains": ("chain", "recent"),
    "outbox.schema": None,
    "outbox.testing": None,
    "outbox.embedded": None,
    "outbox.interop.celery": None,
    "outbox.encryption": None,
    "outbox.large_bodies": None,
    "outbox.interop.cloudevents": ("CloudEvent", "message", "read", "from_message", "encode", "decode"),
    "outbox.interop.dramatiq": None,
    "outbox.interop.faststream": ("message",),
    "outbox.interop.taskiq": None,
}
"""The public modules, with their public names if a module has no `__all__`."""
_DOTTED = re.compile(r"\b(?:[A-Za-z_]\w*\.)+(?=[A-Za-z_])")
_WIDTH = 100


def reference() -> str:
    """Returns the reference of all public names, module by module."""
    return "\n\n".join(part for name, names in MODULES.items() for part in _module(importlib.import_module(name), names))


def _module(module: ModuleType, names: tuple[str, ...] | None) -> Iterator[str]:
    yield f"## `{module.__name__}`"
    yield inspect.getdoc(module) or ""
    for name in names or _public(module):
        yield from _entry(name, getattr(module, name))


def _public(module: ModuleType) -> list[str]:
    """Returns the names of `__all__`, or the names that the module defines."""
    if declared := getattr(module, "__all__", None):
        return sorted(declared, key=str.lower)
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__]
    return [name for name in own if not name.startswith("_")]


def _entry(name: str, value: Any) -> Iterator[str]:
    yield f"### `{name}`"
    if inspect.isclass(value):
        if not issubclass(value, BaseException):
            yield _code(f"class {name}", value)
        yield _text(value)
        for method, function in sorted(vars(value).items()):
            if method.startswith("_") or not _is_documented(function):
                continue
            yield f"#### `{name}.{method}`"
            if not isinstance(function, property):
                yield _code(("async " if _is_async(function) else "") + f"def {method}", getattr(value, method))
            yield _text(function)
    elif callable(value):
        yield _code(("async " if _is_async(value) else "") + f"def {name}", value)
        yield _text(value)
    else:
        yield f"`{type(value).__name__}`"


def _is_documented(function: Any) -> bool:
    return isinstance(function, property | staticmethod | classmethod) or (
        inspect.isfunction(function) and bool(function.__doc__)
    )


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(inspect.unwrap(getattr(function, "__func__", function)))


def _text(value: Any) -> str:
    text = inspect.getdoc(value) or ""
    return "" if inspect.isclass(value) and text.startswith(f"{value.__name__}(") else text


def _code(head: str, value: Callable[..., Any]) -> str:
    """Returns the signature, on several lines if it is long."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return f"```python\n{head}\n```"
    parameters = [_plain(str(each)) for each in signature.parameters.values() if each.name != "self"]
    parameters = _with_markers(signature, parameters)
    returned = (
        "" if signature.return_annotation in (signature.empty, None) or inspect.isclass(value) else signature.return_annotation
    )
    tail = (
        f" -> {_plain(inspect.formatannotation(returned) if not isinstance(returned, str) else returned)}" if returned else ""
    )
    line = f"{head}({', '.join(parameters)}){tail}"
    if len(line) > _WIDTH:
        line = f"{head}(\n" + "".join(f"    {each},\n" for each in parameters) + f"){tail}"
    return f"```python\n{line}\n```"


def _with_markers(signature: inspect.Signature, texts: list[str]) -> list[str]:
    """Inserts `*` before the first keyword-only parameter."""
    kinds = [each.kind for each in signature.parameters.values() if each.name != "self"]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        first = kinds.index(inspect.Parameter.KEYWORD_ONLY)
        return [*texts[:first], "*", *texts[first:]]
    return texts


def _plain(text: str) -> str:
    """Removes module names, quotes around annotations, and memory addresses."""
    text = re.sub(r"<function (\w+) at 0x\w+>|<class '(?:\w+\.)*(\w+)'>", lambda match: match[1] or match[2], text)
    text = re.sub(r"<(?:\w+\.)*(\w+)(?: object)? at 0x\w+>", r"\1(…)", text)
    text = re.sub(r"<(\w+)\.(\w+): [^>]*>", r"\1.\2", text).replace("<factory>", "…")
    text = re.sub(r"[+~-](?=[A-Z]\w*T(?:_co)?\b)", "", text)
    return re.sub(r"^(\*{0,2}\w+): '(.*?)'", r"\1: \2", _DOTTED.sub(_shortened, text))


def _shortened(match: re.Match[str]) -> str:
    """Removes the module prefix but keeps the class of an enum."""
    return "".join(part + "." for part in match[0].rstrip(".").split(".") if part[:1].isupper())
