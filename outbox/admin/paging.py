"""Cursors: places in a list, opaque to clients, each bound to the filter and the order that it was made under."""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import Query

from outbox.admin.problems import Code, Problem

Direction = Literal["next", "previous"]

Limit = Annotated[int, Query(ge=1, le=200, description="Most items of the page.")]
CursorParameter = Annotated[
    str | None, Query(alias="cursor", max_length=2_000, description="`next` or `previous` of a page before; with its filter.")
]
WithTotal = Annotated[bool, Query(alias="total", description="Whether to count all, up to 10,000.")]
MOST_COUNTED = 10_000
"""How far `total=true` counts."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place in a list: behind (`next`) or before (`previous`) the item with the sort keys `place`."""

    direction: Direction
    place: Sequence[Any]

    def encode(self, bound_to: Mapping[str, Any]) -> str:
        """As text, for lists under the filter and order `bound_to` only."""
        raw = json.dumps([self.direction, _mark(bound_to), list(self.place)], separators=(",", ":"), default=str)
        return base64.urlsafe_b64encode(raw.encode()).decode().rstrip("=")


def decode_cursor(text: str | None, bound_to: Mapping[str, Any], kinds: Sequence[type]) -> Cursor | None:
    """The cursor that `text` is, whose place has values of these JSON types; None for None.

    Raises `invalid-cursor` for what never was one, and `cursor-mismatch` for one of another filter or order.
    """
    if text is None:
        return None
    try:
        raw = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
        direction, mark, place = json.loads(raw)
    except (ValueError, TypeError, RecursionError):
        raise _invalid() from None
    well_formed = direction in ("next", "previous") and isinstance(mark, str) and isinstance(place, list)
    if not well_formed or [type(value) for value in place] != list(kinds):
        raise _invalid()
    if mark != _mark(bound_to):
        raise Problem(Code.CURSOR_MISMATCH, "begin again without a cursor, or keep filter and order as they were")
    return Cursor(direction, place)


def _mark(bound_to: Mapping[str, Any]) -> str:
    text = json.dumps(bound_to, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _invalid() -> Problem:
    return Problem(Code.INVALID_CURSOR, "leave `cursor` out, or give one that a page has shown")
