"""What nobody shall read by accident: values of keys that are named like secrets, replaced wherever payloads are shown."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from outbox.errors import ConfigurationError
from outbox.json_paths import Places, beyond, check_paths, is_meant, places
from outbox.masked_json import MOST_NESTED, Rules, masked_json
from outbox.masked_preview import masked_preview
from outbox.urls import redacted

MASK = "***"
"""What stands in the place of a masked value."""
USUAL_KEYS = (
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "token",
    "authorization",
    "credential",
    "cookie",
    "api key",
    "access key",
    "private key",
    "encryption key",
    "card number",
    "credit card",
    "pan",
    "iban",
    "account number",
    "cvv",
    "cvc",
    "security code",
    "pin",
    "otp",
    "ssn",
    "social security",
    "tax id",
    "passport",
)
"""What is masked everywhere, see `Masking`."""

PREVIEW_LIMIT = 200
"""Most characters of a preview."""
SEARCH_LIMIT = 20_000
"""Most characters that are searched of one message."""
READ_LIMIT = 262_144
"""Bytes of the largest body that is read for either."""

_LONGEST_WHOLE_WORD = 4


@dataclass(frozen=True, slots=True)
class Masking:
    """Masks the value of every key that `keys` name, and what is at `paths`; at any depth, and in strings that are JSON too.

    A key is named in words, however it is written: `api key` masks `apiKey`, `X-Api-Key` and `api_keys`. Names of up to four
    letters must be words of their own, so that `pin` masks `card_pin` and leaves `shipping` alone; longer ones may be parts.

    A path leads from the root of a document to what is masked: `$.customer.email`, `$.items[*].name`, `$["odd key"][0]`. One
    that comes to a string that is JSON leads on inside of it; and each such string is a document with a root of its own too.
    """

    keys: tuple[str, ...] = USUAL_KEYS
    paths: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if any(not isinstance(key, str) or not _words(key) for key in self.keys):
            raise ConfigurationError("a key to mask is named in letters, such as 'password' or 'api key'")
        check_paths(self.paths)

    def also(self, *keys: str, paths: Iterable[str] = ()) -> "Masking":
        """This one, masking `keys` and what is at `paths` too."""
        return replace(self, keys=(*self.keys, *keys), paths=(*self.paths, *paths))

    def masks(self, key: str) -> bool:
        """Whether the value of `key` is masked."""
        return _masks(self.keys, key)

    def masked(self, value: Any) -> Any:
        """`value`, as JSON knows it, with masked values in it. What is nested too deep to be read is masked as a whole."""
        return self._masked(value, 0, self._root)

    def masked_json(self, text: str) -> str | None:
        """The JSON `text`, masked, and all else in it exactly as it was written; None if it is no JSON."""
        return masked_json(text, self._rules)

    def masked_preview(self, text: str) -> str:
        """A preview that was made with another masking, masked with this one. Of JSON that was cut more may be left out."""
        shown = masked_preview(text, self._rules)
        return self.masked_text(text) if shown is None else shown

    def masked_text(self, text: str) -> str:
        """`text` such as an error's message: values that follow a key are masked, and passwords in addresses."""
        whole = self._masked_inside(text, 0, self._root)
        if whole is not None:
            return whole
        text = _INPUT.sub(rf"\1{MASK}", redacted(text))
        text = _BEARER.sub(rf"\1 {MASK}", text)
        return _KEY_AND_VALUE.sub(self._masked_pair, text)

    @property
    def _rules(self) -> Rules:
        return Rules(masks=self.masks, root=self._root, words=redacted, mask=MASK)

    @property
    def _root(self) -> Places:
        return places(self.paths)

    def _masked(self, value: Any, depth: int, here: Places) -> Any:
        if depth > MOST_NESTED or (is_meant(here) and value is not None):
            return MASK
        match value:
            case Mapping():
                return self._masked_mapping(value, depth, here)
            case list() | tuple():
                return [self._masked(element, depth + 1, beyond(here, index)) for index, element in enumerate(value)]
            case str():
                inside = self._masked_inside(value, depth, here | self._root)
                return redacted(value) if inside is None else inside
            case _:
                return value

    def _masked_mapping(self, mapping: Mapping[Any, Any], depth: int, here: Places) -> dict[str, Any]:
        masked = {
            str(key): MASK
            if value is not None and self.masks(str(key))
            else self._masked(value, depth + 1, beyond(here, str(key)))
            for key, value in mapping.items()
        }
        # {"name": "password", "value": …}: headers and form fields often look like this.
        if any(isinstance(name := mapping.get(key), str) and self.masks(name) for key in ("name", "key")):
            masked |= {key: MASK for key in ("value", "values") if mapping.get(key) is not None}
        return masked

    def _masked_inside(self, text: str, depth: int, here: Places) -> str | None:
        """A string that is a JSON object or array, masked; None for any other."""
        if text.lstrip()[:1] not in ("{", "[") or len(text) > READ_LIMIT:
            return None
        try:
            value = json.loads(text)
        except ValueError:
            return None
        except RecursionError:
            return MASK
        return json.dumps(self._masked(value, depth + 1, here), ensure_ascii=False)

    def _masked_pair(self, match: "re.Match[str]") -> str:
        return match["before"] + MASK if self.masks(match["key"]) else match[0]


def preview(body: bytes, content_type: str | None, masking: Masking, *, limit: int = PREVIEW_LIMIT) -> str:
    """A short text that says what `body` is: masked JSON, or its size."""
    text = _masked_body(body, content_type, masking)
    if text is None:
        return sized(content_type, len(body))
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def sized(content_type: str | None, size: int) -> str:
    """What says of a body of `size` bytes only how large it is."""
    return f"<{_kind(content_type)}, {_size(size)}>"


def searchable(
    body: bytes, content_type: str | None, masking: Masking, *, error: str, words: Iterable[str], limit: int = SEARCH_LIMIT
) -> str:
    """What a message is found by: `words` (names, ids), the masked text of its error, and its body, masked, if that is JSON."""
    parts = (*words, masking.masked_text(error), _masked_body(body, content_type, masking) or "")
    return "\n".join(part for part in parts if part)[:limit]


# A key in a text: a word or two, perhaps quoted. Its value: quoted, or up to the next space or sign.
_KEY_AND_VALUE = re.compile(
    r"""
    (?P<before>
        (?<![\w.-]) ["']? (?P<key> [A-Za-z][\w.-]{0,60} (?:[ ][A-Za-z]\w{0,30})? ) ["']?
        \s{0,3} (?: => | [:=] ) \s{0,3}
    )
    (?P<value> b?"(?:[^"\\]|\\.)*"? | b?'(?:[^'\\]|\\.)*'? | [^\s,;&)\]}]+ )
    """,
    re.VERBOSE,
)
_BEARER = re.compile(r"\b(Bearer|Basic)\s+[\w.~+/=-]{6,}", re.IGNORECASE)
# pydantic quotes the value that it refused, and names the field elsewhere. A text that was cut may end before the next word.
_INPUT = re.compile(r"(\binput_value=)(?:'(?:[^'\\]|\\.)*'|.*?)(?=, input_type=|\Z)", re.DOTALL)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+")


@lru_cache(maxsize=4_096)
def _masks(keys: tuple[str, ...], key: str) -> bool:
    words = _words(key[:200])
    joined = "".join(words)
    return any(_names(pattern, words, joined) for pattern in keys)


def _names(pattern: str, words: Sequence[str], joined: str) -> bool:
    wanted = _words(pattern)
    if len(wanted) == 1 and len(wanted[0]) <= _LONGEST_WHOLE_WORD:
        return wanted[0] in words or f"{wanted[0]}s" in words
    return "".join(wanted) in joined


@lru_cache(maxsize=4_096)
def _words(key: str) -> tuple[str, ...]:
    """The words of a key in camel case, with hyphens, or otherwise."""
    return tuple(word.lower() for word in _WORD.findall(key))


def _masked_body(body: bytes, content_type: str | None, masking: Masking) -> str | None:
    """A body that is JSON, as short as it can be written and masked; None for any other."""
    claims_json = "json" in (content_type or "").lower()
    if len(body) > READ_LIMIT or not (claims_json or body.lstrip()[:1] in (b"{", b"[")):
        return None
    try:
        value = json.loads(body)
        text = json.dumps(masking.masked(value), ensure_ascii=False, separators=(", ", ": "))
        return text.encode(errors="replace").decode()
    except (ValueError, RecursionError):
        return None


def _kind(content_type: str | None) -> str:
    return "JSON" if "json" in (content_type or "").lower() else "binary"


def _size(count: int) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1_000:
            return f"{count} {unit}"
        count = round(count / 1_000)
    return f"{count} GB"
