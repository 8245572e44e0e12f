"""Finds consumers by name: `package.module:consumers`, as commands and settings give them."""

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from outbox.errors import ConfigurationError

if TYPE_CHECKING:
    from outbox.engine.consumer import Consumer


def load_consumers(target: str) -> "tuple[Consumer, ...]":
    """The consumers that `target` names.

    `package.module:name` names a consumer, or a list or tuple of them; `package.module` all consumers of the module.
    Raises `ConfigurationError` if there are none, with what was found instead.
    """
    module_name, _, name = target.partition(":")
    # Consumers are looked for where the command is given, as `python -m` does it.
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
    if not module_name or not all(part.isidentifier() for part in module_name.split(".")):
        raise ConfigurationError(f"{target!r} names no module: write package.module:consumers")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        # A module that the consumers import themselves may be missing, too; then that is the one to name.
        advice = "; is the folder right?" if error.name and f"{module_name}.".startswith(f"{error.name}.") else ""
        raise ConfigurationError(f"{target}: there is no module {error.name}{advice}") from error
    found: object = module
    for part in name.split(".") if name else ():
        if not hasattr(found, part):
            raise ConfigurationError(f"{target}: {module.__name__} has no {name}")
        found = getattr(found, part)
    if isinstance(found, ModuleType):  # all of its consumers, each once
        found = list({id(value): value for value in vars(found).values() if _is_consumer(value)}.values())
    consumers = tuple(found) if isinstance(found, list | tuple | set | frozenset) else (found,)
    strangers = [repr(item) for item in consumers if not _is_consumer(item)]
    if strangers:
        raise ConfigurationError(
            f"{target} names {', '.join(strangers[:3])}, which is not a consumer: "
            "name a list of functions that are decorated with @consume"
        )
    if not consumers:
        raise ConfigurationError(f"{target} names no consumers: decorate functions with @consume")
    return consumers


def _is_consumer(value: object) -> bool:
    from outbox.engine.consumer import Consumer

    return isinstance(value, Consumer)
