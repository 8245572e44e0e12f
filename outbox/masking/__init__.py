"""Masking: replaces secrets wherever a message, or an error that quotes it, is shown, logged, searched or exported.

There is one function for each kind of text: values (`masked`), JSON text (`masked_json`), free text (`masked_text`), and bodies
of any kind (`readable`, `preview`, `searchable`). API, command line, dashboard, logs and history show nothing without them.
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

from outbox.core.codec import (
    BODY_STORE,
    ENCRYPTION,
    EXCEPTION_MESSAGE,
    EXCEPTION_TRACEBACK,
    FAILURES,
    body_headers,
    decode_stored,
)
from outbox.core.outcome import Failure
from outbox.errors import ConfigurationError
from outbox.masking.json_text import MOST_NESTED, Rules, masked_json, masked_preview, secret_members
from outbox.masking.paths import JsonPaths, check_paths, descend, is_selected, parse_paths
from outbox.masking.text import KnownSecrets, mask_text, secrets_in

_log = logging.getLogger("outbox")

MASK = "***"
"""Replaces a masked value."""
HIDDEN = "(shown to operators only)"
"""Replaces the text of an error that is hidden as a whole."""
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
"""Keys that are masked by default, see `Masking`."""

PREVIEW_LIMIT = 200
"""Maximum length of a preview in characters."""
SEARCH_LIMIT = 20_000
"""Maximum length of the searchable text of a message in characters."""
READ_LIMIT = 262_144
"""Maximum size in bytes of a body that is read for previews and searches."""

_LONGEST_WHOLE_WORD = 4


@dataclass(frozen=True, slots=True)
class Masking:
    """Masks the values of `keys` and the values at `paths`, at any depth, including strings that contain JSON.

    A key is given in words and matches any spelling: `api key` masks `apiKey`, `X-Api-Key` and `api_keys`. A name of up to four
    letters matches whole words only: `pin` masks `card_pin` but not `shipping`. Longer names match parts of words, too.

    A path starts at the root of a document: `$.customer.email`, `$.items[*].name`, `$["odd key"][0]`. It continues inside a
    string that contains JSON, and each such string is also a document with its own root.
    """

    keys: tuple[str, ...] = USUAL_KEYS
    paths: tuple[str, ...] = ()
    known: KnownSecrets | None = field(default=None, repr=False, compare=False)
    """Finds the secret values that `of_message` has collected."""
    hides_errors: bool = False
    """Whether error texts are hidden completely, see `without_errors`."""

    def __post_init__(self) -> None:
        if any(not isinstance(key, str) or not _words(key) for key in self.keys):
            raise ConfigurationError("a key to mask consists of words, such as 'password' or 'api key'")
        check_paths(self.paths)

    def also(self, *keys: str, paths: Iterable[str] = ()) -> "Masking":
        """Returns a copy that also masks `keys` and `paths`."""
        return replace(self, keys=(*self.keys, *keys), paths=(*self.paths, *paths))

    def of_message(self, body: bytes, *others: Any) -> "Masking":
        """Returns a copy for texts about a message, such as its errors. Call it again for texts about several messages.

        The copy masks every value of a masked key or path in `body` and `others` (headers and properties, as mappings or JSON
        text) wherever it occurs in a text, even without a key before it.
        """
        try:
            known = KnownSecrets(self._secrets(body, others), also=self.known)
        # No message may end a worker, and an error that may not be masked completely must not be shown.
        except Exception:  # noqa: BLE001
            _log.error("failed to collect the secrets of a message; its errors are hidden", exc_info=True)
            return self.without_errors()
        return replace(self, known=known) if known else self

    def without_errors(self) -> "Masking":
        """Returns a copy that hides error texts completely, because free text can contain secrets that no rule recognizes."""
        return replace(self, hides_errors=True)

    def masks(self, key: str) -> bool:
        """Whether the value of `key` is masked."""
        return _masks(self.keys, key)

    def masked(self, value: Any) -> Any:
        """Masks a JSON value. A part that is nested too deep is masked completely."""
        return self._masked(value, 0, self._root)

    def masked_json(self, text: str) -> str | None:
        """Masks JSON text, and keeps everything else exactly as written; None if it is not JSON."""
        return masked_json(text, self._rules)

    def masked_preview(self, text: str) -> str:
        """Masks a preview that was made with another masking. May shorten JSON that was cut."""
        shown = masked_preview(text, self._rules)
        return self.masked_text(text) if shown is None else shown

    def masked_text(self, text: str) -> str:
        """Masks free text, such as an error message or a log line: known secrets, and what looks like a secret."""
        if text.lstrip()[:1] in ("{", "[") and len(text) <= READ_LIMIT:
            masked = masked_json(text, self._rules)
            if masked is not None:
                return masked
        return self._mask_free_text(text)

    def error_text(self, text: str) -> str:
        """Masks or hides the message or traceback of an error. Empty text stays empty."""
        return HIDDEN if self.hides_errors and text else self.masked_text(text)

    def error_type(self, text: str) -> str:
        """Masks the name of an error or a group. If error texts are hidden, shows it only if it has the form of a name."""
        return HIDDEN if self.hides_errors and text and not _NAME.fullmatch(text) else self.masked_text(text)

    def failure(self, failure: Failure) -> Failure:
        """Returns `failure` with masked or hidden texts."""
        return replace(
            failure,
            type=self.error_type(failure.type),
            message=self.error_text(failure.message),
            traceback=self.error_text(failure.traceback),
        )

    def _mask_free_text(self, text: str) -> str:
        return mask_text(text, self.masks, MASK, known=self.known, may_have_key=partial(_may_have_key, self.keys))

    @property
    def _rules(self) -> Rules:
        return Rules(masks=self.masks, root=self._root, mask_text=self._mask_free_text, mask=MASK)

    @property
    def _root(self) -> JsonPaths:
        return parse_paths(self.paths)

    def _masked(self, value: Any, depth: int, here: JsonPaths) -> Any:
        if depth > MOST_NESTED or (is_selected(here) and value is not None):
            return MASK
        match value:
            case Mapping():
                extra = secret_members(value, self.masks)
                return {
                    str(key): HIDDEN
                    if self.hides_errors and key in _ERROR_HEADERS
                    else MASK
                    if member is not None and (self.masks(str(key)) or key in extra)
                    else self._masked(member, depth + 1, descend(here, str(key)))
                    for key, member in value.items()
                }
            case list() | tuple():
                return [self._masked(element, depth + 1, descend(here, index)) for index, element in enumerate(value)]
            case str():
                try:
                    inside = _nested_json(value)
                except RecursionError:
                    return MASK
                if inside is None:
                    return self._mask_free_text(value)
                return json.dumps(self._masked(inside, depth + 1, here | self._root), ensure_ascii=False)
            case _:
                return value

    def _secrets(self, body: bytes, others: Iterable[Any]) -> Iterator[str]:
        """Yields all values of masked keys and paths, at any depth."""
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

    def _secrets_of(self, value: Any, depth: int, here: JsonPaths, *, hidden: bool) -> Iterator[str]:
        hidden = hidden or is_selected(here)
        if depth > MOST_NESTED:
            return
        match value:
            case Mapping():
                extra = secret_members(value, self.masks)
                for key, member in value.items():
                    secret = hidden or self.masks(str(key)) or key in extra
                    yield from self._secrets_of(member, depth + 1, descend(here, str(key)), hidden=secret)
            case list() | tuple():
                for index, element in enumerate(value):
                    yield from self._secrets_of(element, depth + 1, descend(here, index), hidden=hidden)
            case str():
                yield from self._secrets_in_string(value, depth, here, hidden=hidden)
            # As a known secret, a boolean would mask that word in every text.
            case int() | float() if hidden and not isinstance(value, bool):
                yield str(value)

    def _secrets_in_string(self, text: str, depth: int, here: JsonPaths, *, hidden: bool) -> Iterator[str]:
        if hidden:
            yield text
        with suppress(RecursionError):
            if (inside := _nested_json(text)) is not None:
                yield from self._secrets_of(inside, depth + 1, here | self._root, hidden=hidden)
            elif not hidden:
                yield from secrets_in(text, self.masks)


@dataclass(frozen=True, slots=True)
class Body:
    """Beginning of a body, up to `READ_LIMIT` + 1 bytes, and the size of the whole body."""

    beginning: bytes
    content_type: str | None
    size: int


BodyKind = Literal["json", "text", "base64"]


def readable(body: Body, masking: Masking | None) -> tuple[BodyKind | None, str | None]:
    """Returns the kind of a body and its text: masked, or without a `masking` the first `READ_LIMIT` bytes.

    Returns no text if secrets in it could not be recognized: for incomplete JSON, bytes, and unknown formats.
    """
    content_type = (body.content_type or "text/plain").lower()
    kind: BodyKind = "base64"
    text: str | None = None
    with suppress(UnicodeDecodeError):
        # Incremental: the limit may cut a character in two, which does not make the body binary.
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


def preview(
    body: bytes,
    content_type: str | None,
    masking: Masking,
    *,
    headers: Mapping[str, Any] | str | None = None,
    limit: int = PREVIEW_LIMIT,
) -> str:
    """Returns a short description of `body`: masked JSON, or its kind and size, as for one that is encrypted or stored."""
    if own := body_headers(headers):
        stored = decode_stored(own.get(BODY_STORE))
        how = "encrypted " * (ENCRYPTION in own) + "stored " * (BODY_STORE in own)
        return sized(content_type, len(body) if stored is None else stored.size).replace("<", f"<{how}", 1)
    text = _masked_body(body, content_type, masking)
    if text is None:
        return sized(content_type, len(body))
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def sized(content_type: str | None, size: int) -> str:
    """Describes a body by its kind and size only."""
    kind = "JSON" if "json" in (content_type or "").lower() else "binary"
    for unit in ("B", "kB", "MB"):
        if size < 1_000:
            return f"<{kind}, {size} {unit}>"
        size = round(size / 1_000)
    return f"<{kind}, {size} GB>"


def searchable(
    body: bytes, content_type: str | None, masking: Masking, *, error: str, words: Iterable[str], limit: int = SEARCH_LIMIT
) -> str:
    """Returns the searchable text of a message: `words` (names, ids), its masked error, and its masked body if it is JSON."""
    parts = (*words, masking.error_text(error), _masked_body(body, content_type, masking) or "")
    return "\n".join(part for part in parts if part)[:limit]


# The innermost frame may follow the name: `KeyError in shop/orders.py:charge`.
_NAME = re.compile(r"[\w.]{1,200}( in [\w.<>/:-]{1,500})?")
_ERROR_HEADERS = frozenset({EXCEPTION_MESSAGE, EXCEPTION_TRACEBACK, FAILURES})
_NO_LETTERS = re.compile(r"[\W\d_]+")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+")


@lru_cache(maxsize=4_096)
def _masks(keys: tuple[str, ...], key: str) -> bool:
    # Any program can send a key that is as long as a message, and the words of each key are cached.
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


def _may_have_key(keys: tuple[str, ...], text: str) -> bool:
    """Whether `text` may contain one of `keys`: a quick check that ignores everything but letters."""
    letters = _NO_LETTERS.sub("", text).lower()
    return any(pattern in letters for pattern in _without_spaces(keys))


@lru_cache(maxsize=64)
def _without_spaces(keys: tuple[str, ...]) -> tuple[str, ...]:
    return tuple({"".join(_words(key)) for key in keys})


@lru_cache(maxsize=4_096)
def _words(key: str) -> tuple[str, ...]:
    """Splits a key into words, at case changes, hyphens or other separators."""
    return tuple(word.lower() for word in _WORD.findall(key))


def _masked_body(body: bytes, content_type: str | None, masking: Masking) -> str | None:
    """Returns a JSON body masked and compact; None for other bodies."""
    claims_json = "json" in (content_type or "").lower()
    if len(body) > READ_LIMIT or not (claims_json or body.lstrip()[:1] in (b"{", b"[")):
        return None
    try:
        value = json.loads(body)
        text = json.dumps(masking.masked(value), ensure_ascii=False, separators=(", ", ": "))
        # JSON can contain lone surrogates, which PostgreSQL does not store.
        return text.encode(errors="replace").decode()
    except (ValueError, RecursionError):
        return None


def _nested_json(text: str) -> Any:
    """Parses a string that contains a JSON object or array; None for others. Raises `RecursionError` if nested too deep."""
    if text.lstrip()[:1] not in ("{", "[") or len(text) > READ_LIMIT:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None


_PLAIN = ("text/plain", "application/x-www-form-urlencoded")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
