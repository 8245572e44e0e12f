"""Imports consumers and events by name, such as `package.module:consumers`."""

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from outbox.errors import ConfigurationError

if TYPE_CHECKING:
    from outbox.contracts import Event
    from outbox.engine.consumer import Consumer

T = TypeVar("T")


def load_consumers(target: str) -> "tuple[Consumer, ...]":
    """Imports the consumers that `target` names.

    `package.module:name` names a consumer, or a list or tuple of consumers; `package.module` all consumers of the module.
    Raises `ConfigurationError`, which says what was found instead, if there are none.
    """
    from outbox.engine.consumer import Consumer

    return _load(target, Consumer, "consumer", "functions that are decorated with @consume")


def load_events(target: str) -> "tuple[Event[Any], ...]":
    """Imports the events that `target` names, as `load_consumers` does."""
    from outbox.contracts import Event

    return _load(target, Event, "event", "events, such as Event('order.placed', Order)")


def _load(target: str, kind: type[T], word: str, wanted: str) -> tuple[T, ...]:
    module_name, _, name = target.partition(":")
    # Like `python -m`, import from the current folder first.
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
    if not module_name or not all(part.isidentifier() for part in module_name.split(".")):
        raise ConfigurationError(f"{target!r} is not a module name: write package.module:consumers")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        # The missing module may be one that the consumers import, so the error names that module.
        hint = ""
        if error.name and f"{module_name}.".startswith(f"{error.name}."):
            is_file = module_name.endswith(".py")
            hint = "; write the module without .py" if is_file else "; run the command in the folder that contains it"
        raise ConfigurationError(f"{target}: no module named {error.name}{hint}") from error
    found: object = module
    for part in name.split(".") if name else ():
        if not hasattr(found, part):
            raise ConfigurationError(f"{target}: {module.__name__} has no {name}")
        found = getattr(found, part)
    if isinstance(found, ModuleType):  # all that it has, each once
        found = list({id(value): value for value in vars(found).values() if isinstance(value, kind)}.values())
    items = tuple(found) if isinstance(found, list | tuple | set | frozenset) else (found,)
    invalid = [repr(item) for item in items if not isinstance(item, kind)]
    if invalid:
        article = "an" if word[0] in "aeiou" else "a"
        raise ConfigurationError(f"{target} contains {', '.join(invalid[:3])}, which is not {article} {word}: list {wanted}")
    if not items:
        raise ConfigurationError(f"{target} contains no {word}s: it must contain {wanted}")
    return items
