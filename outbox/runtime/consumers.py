"""Imports consumers by name, such as `package.module:consumers`."""

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from outbox.errors import ConfigurationError

if TYPE_CHECKING:
    from outbox.engine.consumer import Consumer


def load_consumers(target: str) -> "tuple[Consumer, ...]":
    """Imports the consumers that `target` names.

    `package.module:name` names a consumer, or a list or tuple of consumers; `package.module` all consumers of the module.
    Raises `ConfigurationError`, which says what was found instead, if there are none.
    """
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
        hint = (
            "; run the command in the folder that contains it"
            if error.name and f"{module_name}.".startswith(f"{error.name}.")
            else ""
        )
        raise ConfigurationError(f"{target}: no module named {error.name}{hint}") from error
    found: object = module
    for part in name.split(".") if name else ():
        if not hasattr(found, part):
            raise ConfigurationError(f"{target}: {module.__name__} has no {name}")
        found = getattr(found, part)
    if isinstance(found, ModuleType):  # all of its consumers, each once
        found = list({id(value): value for value in vars(found).values() if _is_consumer(value)}.values())
    consumers = tuple(found) if isinstance(found, list | tuple | set | frozenset) else (found,)
    invalid = [repr(item) for item in consumers if not _is_consumer(item)]
    if invalid:
        raise ConfigurationError(
            f"{target} contains {', '.join(invalid[:3])}, which is not a consumer: "
            "list functions that are decorated with @consume"
        )
    if not consumers:
        raise ConfigurationError(f"{target} contains no consumers: decorate functions with @consume")
    return consumers


def _is_consumer(value: object) -> bool:
    from outbox.engine.consumer import Consumer

    return isinstance(value, Consumer)
