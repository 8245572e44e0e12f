"""Reads settings and secrets from the environment, and reports variables that look like misspelt settings.

Functions import the settings table when they run, because importing it would slow down `outbox --help`.
"""

import logging
import os
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from outbox.errors import ConfigurationError

if TYPE_CHECKING:
    from outbox.runtime.settings import Setting

logger = logging.getLogger("outbox")

_FILE = "_FILE"
_SIMILAR = 0.8
_TESTS = "OUTBOX_TEST_"
# Kubernetes and container links inject these variables for a service called `outbox` or `outbox-…`.
_INJECTED = re.compile(r".*_(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT_\d+_(TCP|UDP|SCTP)(_.*)?)")
_INJECTED_ADDRESS = re.compile(r"(tcp|udp|sctp)://")


def check_environment(environment: Mapping[str, str] | None = None) -> None:
    """Raises `ConfigurationError` for a variable whose name resembles a setting; warns of other unknown `OUTBOX_` variables."""
    from outbox.runtime.settings import PREFIX, VARIABLES

    known = VARIABLES | _files()
    unknown = sorted(
        name
        for name, value in (os.environ if environment is None else environment).items()
        if (upper := name.upper()).startswith(PREFIX)
        and not upper.startswith(_TESTS)
        and upper not in known
        and not _INJECTED.fullmatch(upper)
        and not _INJECTED_ADDRESS.match(value)
    )
    misspelt = {name: near for name in unknown if (near := _near_miss(name.upper()))}
    if misspelt:
        raise ConfigurationError("; ".join(f"{name} is not a setting, did you mean {near}?" for name, near in misspelt.items()))
    # Only a warning: orchestrators inject variables that begin with the name of a service.
    for name in unknown:
        logger.warning("%s is not a setting and has no effect", name)


def secret(name: str, environment: Mapping[str, str] | None = None) -> str | None:
    """Returns the value of the variable `name`, or the content of the file that `<name>_FILE` names; None without either.

    Line breaks at the end of the file are removed. Raises `ConfigurationError` if both are set, and if the file is empty or
    cannot be read.
    """
    variables = os.environ if environment is None else environment
    value, file = variables.get(name), variables.get(name + _FILE)
    if not file:
        return value or None
    if value:
        raise ConfigurationError(f"{name} and {name}{_FILE} are both set: unset one of them")
    try:
        content = Path(file).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "it is not text"
        raise ConfigurationError(f"{name}{_FILE}: {file} cannot be read: {reason}") from error
    if not content:
        raise ConfigurationError(f"{name}{_FILE}: {file} is empty")
    return content


def read_environment(settings: Iterable["Setting"]) -> dict[str, str]:
    """Returns the text of each setting that the environment contains, by name. An empty variable counts as unset.

    Variable names are case-insensitive. Raises `ConfigurationError` like `secret`.
    """
    variables = {name.upper(): value for name, value in os.environ.items()}
    found = {each.name: secret(each.variable, variables) if each.secret else variables.get(each.variable) for each in settings}
    return {name: value for name, value in found.items() if value}


def _near_miss(name: str) -> str | None:
    """Returns the setting that a name resembles: similar letters, or the only one that extends the name by whole words."""
    from outbox.runtime.settings import OF_SERVICE, PREFIX

    short = name.removeprefix(PREFIX)
    meant = _files() if name.endswith(_FILE) else {each.variable for each in OF_SERVICE.values()}
    names = sorted(each.removeprefix(PREFIX) for each in meant)
    similar = get_close_matches(short, names, n=1, cutoff=_SIMILAR)
    shortened = [known for known in names if known.startswith(f"{short}_") or known.endswith(f"_{short}")]
    found = similar or (shortened if len(shortened) == 1 else [])
    return PREFIX + found[0] if found else None


def _files() -> frozenset[str]:
    from outbox.runtime.settings import SETTINGS

    return frozenset(each.variable + _FILE for each in SETTINGS.values() if each.secret)
