"""Masks values in JSON text, and keeps everything else exactly as written: numbers, spaces, repeated keys.

A preview, which may be only the beginning of a JSON text, is masked as far as it can be read.
"""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from json.decoder import scanstring  # type: ignore[attr-defined]  # of the standard library, though not in its stubs
from typing import Any, NamedTuple

from outbox.masking.paths import JsonPaths, descend, is_selected

MOST_NESTED = 40
"""Maximum depth; deeper values are masked completely."""
CUT = "…"
"""End of a preview that was cut."""
_CLOSING = {"{": "}", "[": "]"}
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"?|[{}\[\],]', re.DOTALL)


class Rules(NamedTuple):
    """Masking rules: which keys and paths are masked, how free text is masked, and the replacement `mask`."""

    masks: Callable[[str], bool]
    root: JsonPaths
    mask_text: Callable[[str], str]
    mask: str


def masked_json(text: str, rules: Rules) -> str | None:
    """Masks JSON text; None if it is not JSON."""
    return _JsonMasker(text, rules).masked(rules.root, 0)


def masked_preview(text: str, rules: Rules) -> str | None:
    """Masks a preview of JSON; if it was cut, keeps what can be read. None if it is not JSON."""
    if not text.endswith(CUT):
        return masked_json(text, rules)
    cut = text.removesuffix(CUT)
    for completion in _completions(cut):
        masked = masked_json(completion, rules)
        if masked is not None:
            return text if masked == completion and completion.startswith(cut) else masked + CUT
    return None


def _completions(cut: str) -> Iterator[str]:
    """Completes JSON text that was cut: with its last value as far as it goes, or without that value."""
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
    yield cut + open_
    if string:
        # Close the string at the end, unless it contains JSON itself: secrets in incomplete JSON cannot be recognized.
        with suppress(json.JSONDecodeError):
            if scanstring(f'{string}"', 1)[0].lstrip()[:1] not in ("{", "["):
                yield f'{cut}"{open_}'
    yield complete


def secret_members(mapping: Mapping[Any, Any], masks: Callable[[str], bool]) -> Collection[str]:
    """Returns the members of an object that are secret because of another member.

    These are `{"name": "password", "value": …}`, as in headers and form fields, and `{"loc": …, "input": …}`, a pydantic error.
    """
    if any(isinstance(name := mapping.get(key), str) and masks(name) for key in ("name", "key", "field", "header")):
        return ("value", "values")
    return ("input",) if "loc" in mapping and "msg" in mapping else ()


class _Value(NamedTuple):
    end: int
    shown: str
    string: str | None = None
    is_null: bool = False


class _JsonMasker:
    """Masks a JSON text in one pass."""

    def __init__(self, text: str, rules: Rules) -> None:
        self._text = text
        self._rules = rules
        self._mask = json.dumps(rules.mask)

    def masked(self, paths: JsonPaths, depth: int) -> str | None:
        try:
            start = self._skip(0)
            value = self._value(start, depth, paths)
            if self._skip(value.end) != len(self._text):
                return None
        except (ValueError, IndexError):
            return None
        except RecursionError:
            return self._mask
        return self._text[:start] + value.shown + self._text[value.end :]

    def _value(self, at: int, depth: int, paths: JsonPaths) -> _Value:
        """Reads and masks the value at a position. Raises `ValueError` or `IndexError` if there is none."""
        if depth > MOST_NESTED:
            return _Value(json.JSONDecoder().raw_decode(self._text, at)[1], self._mask)
        match self._text[at]:
            case "{":
                value = self._object(at, depth, paths)
            case "[":
                value = self._array(at, depth, paths)
            case '"':
                value = self._string(at, depth, paths)
            case _:
                scalar = _SCALAR.match(self._text, at)
                if scalar is None:
                    raise ValueError
                value = _Value(scalar.end(), scalar[0], is_null=scalar[0] == "null")
        return value._replace(shown=self._mask) if is_selected(paths) and not value.is_null else value

    def _string(self, at: int, depth: int, paths: JsonPaths) -> _Value:
        string, end = scanstring(self._text, at + 1)
        masked = None
        if string.lstrip()[:1] in ("{", "["):
            masked = _JsonMasker(string, self._rules).masked(paths | self._rules.root, depth + 1)
        if masked is None:
            masked = self._rules.mask_text(string)
        if masked == string:
            return _Value(end, self._text[at:end], string)
        try:
            masked.encode()
        # Lone surrogates cannot be encoded, so they are written as escapes.
        except UnicodeEncodeError:
            return _Value(end, json.dumps(masked), string)
        return _Value(end, json.dumps(masked, ensure_ascii=False), string)

    def _array(self, at: int, depth: int, paths: JsonPaths) -> _Value:
        shown, copied = [], at
        index, at = 0, self._skip(at + 1)
        while self._text[at] != "]" or index:
            value = self._value(at, depth + 1, descend(paths, index))
            shown += [self._text[copied:at], value.shown]
            copied, at, index = value.end, self._skip(value.end), index + 1
            if self._text[at] != ",":
                break
            at = self._skip(at + 1)
        return _Value(self._closed(at, "]"), "".join(shown) + self._text[copied : at + 1])

    def _object(self, at: int, depth: int, paths: JsonPaths) -> _Value:
        members: list[tuple[str, int, _Value]] = []
        copied, at = at, self._skip(at + 1)
        while self._text[at] != "}" or members:
            if self._text[at] != '"':
                raise ValueError
            key, end = scanstring(self._text, at + 1)
            colon = self._skip(end)
            if self._text[colon] != ":":
                raise ValueError
            start = self._skip(colon + 1)
            value = self._value(start, depth + 1, descend(paths, key))
            members.append((key, start, value))
            at = self._skip(value.end)
            if self._text[at] != ",":
                break
            at = self._skip(at + 1)
        end = self._closed(at, "}")
        # After all members are read, because a later one may mark an earlier one as secret.
        extra = secret_members({key: value.string for key, _, value in members}, self._rules.masks)
        shown = []
        for key, start, value in members:
            hidden = not value.is_null and (self._rules.masks(key) or key in extra)
            shown += [self._text[copied:start], self._mask if hidden else value.shown]
            copied = value.end
        return _Value(end, "".join(shown) + self._text[copied:end])

    def _skip(self, at: int) -> int:
        """Returns the position after whitespace."""
        match = _SPACES.match(self._text, at)
        return match.end() if match else at

    def _closed(self, at: int, bracket: str) -> int:
        if self._text[at] != bracket:
            raise ValueError
        return at + 1


_SPACES = re.compile(r"[ \t\n\r]*")
# NaN and Infinity are not JSON, but Python writes and reads them.
_SCALAR = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null|NaN|-?Infinity")
