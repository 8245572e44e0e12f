"""How bodies are shown: as much of them as masking can read, or, revealed, as they are."""

import base64
import codecs
import re
from dataclasses import dataclass
from typing import Literal

from outbox.admin.dlq.models import Content
from outbox.masking import READ_LIMIT, Masking

Kind = Literal["json", "text", "base64"]


@dataclass(frozen=True, slots=True)
class Body:
    """The first bytes of a body, up to one more than `READ_LIMIT`, and the size of the whole."""

    beginning: bytes
    content_type: str | None
    size: int


def content(body: Body, masking: Masking | None) -> Content:
    """What is shown of `body`: masked, or, without a `masking`, everything up to `READ_LIMIT` bytes."""
    kind, text = _read(body)
    if masking is None:
        shown = base64.b64encode(body.beginning[:READ_LIMIT]).decode() if text is None else text
        return _content(body, kind, shown, masked=False)
    masked = _masked(body, kind, text, masking)
    if masked is None:
        return _content(body, None, None, masked=True)
    return _content(body, kind, masked, masked=masked != text)


def _content(body: Body, kind: Kind | None, text: str | None, *, masked: bool) -> Content:
    return Content(
        content_type=body.content_type,
        size=body.size,
        encoding=kind,
        content=text,
        truncated=body.size > READ_LIMIT,
        masked=masked,
    )


def _read(body: Body) -> tuple[Kind, str | None]:
    """What a body is, and its text, if it is one."""
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(body.beginning[:READ_LIMIT], final=body.size <= READ_LIMIT)
    except UnicodeDecodeError:
        return "base64", None
    if _is_json(body, text):
        return "json", text
    return ("base64", None) if _CONTROL.search(text) else ("text", text)


def _is_json(body: Body, text: str) -> bool:
    return "json" in (body.content_type or "").lower() or text.lstrip()[:1] in ("{", "[")


def _masked(body: Body, kind: Kind, text: str | None, masking: Masking) -> str | None:
    """The text without what is secret; None where nobody can tell what is: in half a JSON, in bytes, in markup and tables."""
    if text is None:
        return None
    if kind == "json":
        return masking.masked_json(text) if body.size <= READ_LIMIT else None
    plain = (body.content_type or "text/plain").partition(";")[0].strip().lower() in _PLAIN
    return masking.masked_text(text) if plain else None


_PLAIN = ("text/plain", "application/x-www-form-urlencoded")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
