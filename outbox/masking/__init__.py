"""Masking: secrets replaced wherever a message, or an error that quotes it, is shown, logged, searched or exported.

There is one function for each kind of text: values (`masked`), JSON text (`masked_json`), free text (`masked_text`), bodies of
any kind (`readable`, `preview`, `searchable`). What API, command line, dashboard, logs and history show passes through them.
"""

import base64
import codecs
import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, Literal

from outbox.core.codec import EXCEPTION_MESSAGE, EXCEPTION_TRACEBACK, FAILURES
from outbox.core.outcome import Failure
from outbox.errors import ConfigurationError
from outbox.masking.json_text import MOST_NESTED, Rules, masked_json, masked_preview, secret_members
from outbox.masking.paths import Places, beyond, check_paths, is_meant, places
from outbox.masking.text import KnownSecrets, mask_text, secrets_in

_log = logging.getLogger("outbox")

MASK = "***"
"""What stands in the place of a masked value."""
HIDDEN = "(shown to operators only)"
"""What stands in the place of an error's text where it is hidden as a whole."""
USUAL_KEYS = (
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "pass",
    "pwd",
    "pw",
    "secret",
    "token",
    "jwt",
    "auth",
    "authorization",
    "authentication",
    "bearer",
    "credential",
    "cookie",
    "session",
    "sid",
    "csrf",
    "xsrf",
    "signature",
    "api key",
    "access key",
    "private key",
    "encryption key",
    "signing key",
    "card number",
    "credit card",
    "pan",
    "iban",
    "account number",
    "routing number",
    "sort code",
    "cvv",
    "cvc",
    "security code",
    "pin",
    "otp",
    "mfa",
    "ssn",
    "social security",
    "tax id",
    "passport",
    "license number",
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
    known: KnownSecrets | None = field(default=None, repr=False, compare=False)
    """Finds values that `of_message` learnt to be secret."""
    hides_errors: bool = False
    """Whether the texts of errors are hidden as a whole, see `without_errors`."""

    def __post_init__(self) -> None:
        if any(not isinstance(key, str) or not _words(key) for key in self.keys):
            raise ConfigurationError("a key to mask is named in letters, such as 'password' or 'api key'")
        check_paths(self.paths)

    def also(self, *keys: str, paths: Iterable[str] = ()) -> "Masking":
        """This one, masking `keys` and what is at `paths` too."""
        return replace(self, keys=(*self.keys, *keys), paths=(*self.paths, *paths))

    def of_message(self, body: bytes, *others: Any) -> "Masking":
        """This one for texts about one message, such as its errors; asked again, about several.

        Every value that stands under a masked key or path in its body, or in one of `others` (headers, properties; mappings, or
        JSON as text), is masked wherever it occurs in a text, also where no key comes before it.
        """
        try:
            known = KnownSecrets(self._secrets(body, others), also=self.known)
        except Exception:  # noqa: BLE001  no message may end a worker; what cannot be masked for sure is not shown
            _log.error("the secrets of a message could not be found, so that its errors are hidden", exc_info=True)
            return self.without_errors()
        return replace(self, known=known) if known else self

    def without_errors(self) -> "Masking":
        """This one, hiding the texts of errors as a whole: in free text a secret can be written in ways that no rule knows."""
        return replace(self, hides_errors=True)

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
        """`text` such as an error's message or a line of a log, without what is known or looks to be secret in it."""
        if text.lstrip()[:1] in ("{", "[") and len(text) <= READ_LIMIT:
            masked = masked_json(text, self._rules)
            if masked is not None:
                return masked
        return self._masked_words(text)

    def error_text(self, text: str) -> str:
        """The message or the traceback of an error: masked, or hidden as a whole. An empty one hides nothing."""
        return HIDDEN if self.hides_errors and text else self.masked_text(text)

    def error_type(self, text: str) -> str:
        """The name of an error, or of a group of them: masked; where texts are hidden, shown if it is a name and no text."""
        return HIDDEN if self.hides_errors and text and not _NAME.fullmatch(text) else self.masked_text(text)

    def failure(self, failure: Failure) -> Failure:
        """`failure` as it may be shown."""
        return replace(
            failure,
            type=self.error_type(failure.type),
            message=self.error_text(failure.message),
            traceback=self.error_text(failure.traceback),
        )

    def _masked_words(self, text: str) -> str:
        return mask_text(text, self.masks, MASK, known=self.known, may_name=partial(_may_name, self.keys))

    @property
    def _rules(self) -> Rules:
        return Rules(masks=self.masks, root=self._root, words=self._masked_words, mask=MASK)

    @property
    def _root(self) -> Places:
        return places(self.paths)

    def _masked(self, value: Any, depth: int, here: Places) -> Any:
        if depth > MOST_NESTED or (is_meant(here) and value is not None):
            return MASK
        match value:
            case Mapping():
                extra = secret_members(value, self.masks)
                return {
                    str(key): HIDDEN
                    if self.hides_errors and key in _ERROR_HEADERS
                    else MASK
                    if member is not None and (self.masks(str(key)) or key in extra)
                    else self._masked(member, depth + 1, beyond(here, str(key)))
                    for key, member in value.items()
                }
            case list() | tuple():
                return [self._masked(element, depth + 1, beyond(here, index)) for index, element in enumerate(value)]
            case str():
                # A string may be a JSON object or array, and is masked as such then.
                try:
                    inside = _json_inside(value)
                except RecursionError:
                    return MASK
                if inside is None:
                    return self._masked_words(value)
                return json.dumps(self._masked(inside, depth + 1, here | self._root), ensure_ascii=False)
            case _:
                return value

    def _secrets(self, body: bytes, others: Iterable[Any]) -> Iterator[str]:
        """Every value under a masked key or path, at any depth."""
        for other in others:
            yield from self._secrets_of(other, 0, self._root, hidden=False)
        if len(body) > READ_LIMIT:
            return
        try:
            text = body.decode()
        except UnicodeDecodeError:
            return
        try:
            value = json.loads(text)
        except RecursionError:
            return
        except ValueError:
            yield from secrets_in(text, self.masks)
        else:
            yield from self._secrets_of(value, 0, self._root, hidden=False)

    def _secrets_of(self, value: Any, depth: int, here: Places, *, hidden: bool) -> Iterator[str]:
        hidden = hidden or is_meant(here)
        if depth > MOST_NESTED:
            return
        match value:
            case Mapping():
                extra = secret_members(value, self.masks)
                for key, member in value.items():
                    secret = hidden or self.masks(str(key)) or key in extra
                    yield from self._secrets_of(member, depth + 1, beyond(here, str(key)), hidden=secret)
            case list() | tuple():
                for index, element in enumerate(value):
                    yield from self._secrets_of(element, depth + 1, beyond(here, index), hidden=hidden)
            case str():
                yield from self._secrets_in_string(value, depth, here, hidden=hidden)
            case int() | float() if hidden and not isinstance(value, bool):
                yield str(value)

    def _secrets_in_string(self, text: str, depth: int, here: Places, *, hidden: bool) -> Iterator[str]:
        if hidden:
            yield text
        with suppress(RecursionError):
            if (inside := _json_inside(text)) is not None:
                yield from self._secrets_of(inside, depth + 1, here | self._root, hidden=hidden)
            elif not hidden:
                yield from secrets_in(text, self.masks)


@dataclass(frozen=True, slots=True)
class Body:
    """The first bytes of a body, up to one more than `READ_LIMIT`, and the size of the whole."""

    beginning: bytes
    content_type: str | None
    size: int


BodyKind = Literal["json", "text", "base64"]


def readable(body: Body, masking: Masking | None) -> tuple[BodyKind | None, str | None]:
    """What a body is, and as much of its text as may be shown: masked, or, without a `masking`, up to `READ_LIMIT` bytes of it.

    No text where it is not clear what is secret in it: in half a JSON, in bytes, in formats that are not read.
    """
    content_type = (body.content_type or "text/plain").lower()
    kind: BodyKind = "base64"
    text: str | None = None
    with suppress(UnicodeDecodeError):
        text = codecs.getincrementaldecoder("utf-8")().decode(body.beginning[:READ_LIMIT], final=body.size <= READ_LIMIT)
        if "json" in content_type or text.lstrip()[:1] in ("{", "["):
            kind = "json"
        elif _CONTROL.search(text):
            text = None
        else:
            kind = "text"
    if masking is None:
        return kind, base64.b64encode(body.beginning[:READ_LIMIT]).decode() if text is None else text
    if text is None:
        return None, None
    if kind == "json":
        masked = masking.masked_json(text) if body.size <= READ_LIMIT else None
    else:
        masked = masking.masked_text(text) if content_type.partition(";")[0].strip() in _PLAIN else None
    return (None, None) if masked is None else (kind, masked)


def preview(body: bytes, content_type: str | None, masking: Masking, *, limit: int = PREVIEW_LIMIT) -> str:
    """A short text that says what `body` is: masked JSON, or its size."""
    text = _masked_body(body, content_type, masking)
    if text is None:
        return sized(content_type, len(body))
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def sized(content_type: str | None, size: int) -> str:
    """What says of a body of `size` bytes only how large it is."""
    kind = "JSON" if "json" in (content_type or "").lower() else "binary"
    for unit in ("B", "kB", "MB"):
        if size < 1_000:
            return f"<{kind}, {size} {unit}>"
        size = round(size / 1_000)
    return f"<{kind}, {size} GB>"


def searchable(
    body: bytes, content_type: str | None, masking: Masking, *, error: str, words: Iterable[str], limit: int = SEARCH_LIMIT
) -> str:
    """What a message is found by: `words` (names, ids), the masked text of its error, and its body, masked, if that is JSON."""
    parts = (*words, masking.error_text(error), _masked_body(body, content_type, masking) or "")
    return "\n".join(part for part in parts if part)[:limit]


# The innermost frame may follow the name: `KeyError in shop/orders.py:charge`.
_NAME = re.compile(r"[\w.]{1,200}( in [\w.<>/:-]{1,500})?")
_ERROR_HEADERS = frozenset({EXCEPTION_MESSAGE, EXCEPTION_TRACEBACK, FAILURES})
_NO_LETTERS = re.compile(r"[\W\d_]+")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+")


@lru_cache(maxsize=4_096)
def _masks(keys: tuple[str, ...], key: str) -> bool:
    words = _words(key[:200])
    joined = "".join(words)
    for pattern in keys:
        wanted = _words(pattern)
        if len(wanted) == 1 and len(wanted[0]) <= _LONGEST_WHOLE_WORD:
            if wanted[0] in words or f"{wanted[0]}s" in words:
                return True
        elif "".join(wanted) in joined:
            return True
    return False


def _may_name(keys: tuple[str, ...], text: str) -> bool:
    """Whether a key in `text` may be named like one of `keys`: whether its letters are there, one after another."""
    letters = _NO_LETTERS.sub("", text).lower()
    return any(pattern in letters for pattern in _joined(keys))


@lru_cache(maxsize=64)
def _joined(keys: tuple[str, ...]) -> tuple[str, ...]:
    return tuple({"".join(_words(key)) for key in keys})


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


def _json_inside(text: str) -> Any:
    """The JSON object or array that a string is; None for any other. Raises `RecursionError` for one nested too deep."""
    if text.lstrip()[:1] not in ("{", "[") or len(text) > READ_LIMIT:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None


_PLAIN = ("text/plain", "application/x-www-form-urlencoded")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
