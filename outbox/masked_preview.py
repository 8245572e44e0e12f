"""Previews that were written down before something was to be hidden: the beginning of a JSON text, masked all the same."""

import json
import re
from collections.abc import Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]  # of the standard library, though not in its stubs

from outbox.masked_json import Rules, masked_json

CUT = "…"
"""What a preview ends with that is only the beginning."""
_CLOSING = {"{": "}", "[": "]"}
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"?|[{}\[\],]', re.DOTALL)


def masked_preview(text: str, rules: Rules) -> str | None:
    """`text`, a preview of JSON, as it may be shown: if it was cut, up to what can be told. None if it is no JSON."""
    if not text.endswith(CUT):
        return masked_json(text, rules)
    cut = text.removesuffix(CUT)
    for whole in _wholes(cut):
        masked = masked_json(whole, rules)
        if masked is not None:
            return text if masked == whole and whole.startswith(cut) else masked + CUT
    return None


def _wholes(cut: str) -> Iterator[str]:
    """JSON texts that `cut` may be the beginning of: with its last value as far as it goes, or without that."""
    open_, complete, string = "", "", ""
    for token in _TOKEN.finditer(cut):
        sign = token[0]
        if sign[0] == '"':
            string = sign if token.end() == len(cut) else ""
            continue
        if sign == ",":
            complete = cut[: token.start()] + open_
        elif sign in _CLOSING:
            open_ = _CLOSING[sign] + open_
            complete = cut[: token.end()] + open_
        else:
            open_ = open_[1:]
    yield from (cut + end + open_ for end in _ends(string))
    yield complete


def _ends(string: str) -> Iterator[str]:
    """How the string at the end of a text may have ended. What may be JSON itself, half of it, shows too much."""
    yield ""
    try:
        beginning, _ = scanstring(f'{string}"', 1) if string else ("", 0)
    except json.JSONDecodeError:
        return
    if string and beginning.lstrip()[:1] not in ("{", "["):
        yield '"'
