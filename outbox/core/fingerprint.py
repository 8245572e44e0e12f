"""Groups similar failures: those of one queue with the same exception type, location in the handler's code, and message.

Ignores numbers, ids, addresses and quoted values in the message, and line numbers and installation folders in the location. So
a failure has the same fingerprint on every host, and after every release that did not change its code. See
docs/decisions/0157-what-makes-a-group.md.
"""

import re
from hashlib import sha256

from outbox.core.outcome import Failure, Frame, Redact, find_frame

LONGEST_TITLE = 300
"""Longest title, in characters. Longer ones are cut."""


def fingerprint_of(error: BaseException, *, queue: str, redact: Redact | None = None) -> str:
    """Returns the id of the group in which the dashboard shows `error`, raised by the handler of `queue`.

    The id has sixteen hexadecimal digits. It is equal for similar errors in every process, and after every release that did not
    change the handler. `redact` is that of the worker: it changes what is stored, and so the id.
    """
    return fingerprint(Failure.of(error, redact=redact), queue=queue)


def fingerprint(failure: Failure, *, queue: str) -> str:
    """Returns sixteen hexadecimal digits that are equal for similar failures."""
    # Two handlers may fail alike and still need different fixes: the queue stands for the handler.
    frame = find_frame(failure)
    parts = (queue, failure.type, _summary(failure), "" if frame is None else _format_frame(frame))
    return sha256("\0".join(parts).encode(errors="replace")).hexdigest()[:16]


def group_title(failure: Failure) -> str:
    """Returns a readable title for a group of similar failures.

    `ValueError: no stock of # in orders/payment.py:charge`; of pydantic `ValidationError: Order, items.#.size (int_parsing)`.
    """
    summary = _summary(failure)
    title = f"{failure.type}: {summary}" if summary else failure.type
    frame = find_frame(failure)
    if frame is None:
        return title[:LONGEST_TITLE]
    place = f" in {_format_frame(frame)}"
    return title[: max(0, LONGEST_TITLE - len(place))] + place[:LONGEST_TITLE]


def without_values(text: str) -> str:
    """Replaces each number, id, address and quoted value in `text` by `#`."""
    text = _ADDRESS.sub("#", text[:_LONGEST_MESSAGE])
    text = _QUOTED.sub("#", text)
    text = _VALUE.sub("#", text)
    return " ".join(text.split())


def _summary(failure: Failure) -> str:
    """Returns the first line of the message without values; for pydantic, the model, its invalid fields and error types."""
    validation = _VALIDATION.match(failure.message)
    if validation is None:
        lines = failure.message.strip().splitlines()
        return without_values(lines[0]) if lines else ""
    refused = {f"{_INDEX.sub('#', each['field'])} ({each['kind']})" for each in _REFUSED.finditer(failure.message)}
    return ", ".join([validation["model"], *sorted(refused)])


_LONGEST_MESSAGE = 2_000
_VALIDATION = re.compile(r"\d+ validation errors? for (?P<model>.+)")
_REFUSED = re.compile(r"^(?P<field>\S.*)\n  .*?\[type=(?P<kind>\w+)", re.MULTILINE)
_INDEX = re.compile(r"(?<![^.])\d+(?![^.])")
# Email addresses and URLs.
_ADDRESS = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+|\b[a-z][a-z0-9+.-]*://[^\s'\"<>]+")
# An apostrophe within a word does not begin a quotation.
_QUOTED = re.compile(r"""(?<!\w)'[^']*'(?!\w)|"[^"]*"|`[^`]*`""")
_VALUE = re.compile(
    r"""
    \b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b    # a UUID
    | \b0x[0-9a-f]+\b                                                   # an address in memory
    | \b(?=[a-f]*[0-9])[0-9a-f]{8,}\b                                   # a digest
    | \b(?=[\w-]*[0-9])(?=[\w-]*[A-Za-z])\w[\w-]{7,}\b                 # an id of letters and digits
    | [+-]?\d+(?:[.,:]\d+)*                                             # a number, a time, an address of a host
    """,
    re.VERBOSE | re.IGNORECASE,
)


_ANY_RELEASE = re.compile(r"[v\d][\d._-]*|[0-9a-f]{7,}", re.IGNORECASE)


def _format_frame(frame: Frame) -> str:
    """Formats a frame as folder, file and function."""
    # A folder named after a release would change the fingerprint with each deployment.
    *folders, file = frame.path.split("/")[-2:]
    path = "/".join(["#" if _ANY_RELEASE.fullmatch(folder) else folder for folder in folders] + [file])
    return f"{path}:{frame.function}"
