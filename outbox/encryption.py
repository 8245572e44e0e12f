"""Encrypts the bodies of messages between a Publisher and the handlers of its consumers.

keys = StaticKeys({"2026-11": key}, current="2026-11")
publisher = Publisher(encryption=Encryption(keys))
worker = Worker(…, encryption=Encryption(keys))

A random data key encrypts each body with AES-256-GCM. The current key of a `KeyProvider` wraps the data key, and the header
`x-encryption` carries the wrapped data key and the name of the key that wrapped it.
"""

import os
import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import NamedTuple, Protocol, Self

from outbox.core.codec import ENCRYPTION
from outbox.errors import ConfigurationError, DecryptionError, MissingExtraError, UnknownKeyError

try:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.keywrap import InvalidUnwrap, aes_key_unwrap, aes_key_wrap
except ModuleNotFoundError as error:
    raise MissingExtraError(purpose="Encryption", extra="encryption") from error

__all__ = ["Encryption", "KeyProvider", "StaticKeys", "WrappedKey"]

_ALGORITHM = "A256GCM"
_KEY_BYTES = 32
_NONCE_BYTES = 12
_KEY_ID = r"[A-Za-z0-9_.:/@+-]{1,200}"
_HEADER = re.compile(
    rf"v=1;alg={_ALGORITHM};kid=(?P<kid>{_KEY_ID});key=(?P<key>[A-Za-z0-9+/=]{{1,4096}});nonce=(?P<nonce>[A-Za-z0-9+/]{{16}})"
)


class WrappedKey(NamedTuple):
    """A data key, encrypted with the key `key_id`, which has up to 200 letters, digits and `_.:/@+-`."""

    key_id: str
    wrapped: bytes


class KeyProvider(Protocol):
    """Wraps and unwraps data keys. Called for each message, from any thread and in event loops, so it must not block for long.

    Errors other than those below are those of the provider. In a Publisher they reach the caller, and nothing is written. In a
    Worker they are failed attempts.
    """

    def wrap(self, data_key: bytes) -> WrappedKey:
        """Encrypts a data key of 32 bytes, to at most 3,072 bytes, with the current key."""
        ...

    def unwrap(self, key_id: str, wrapped: bytes) -> bytes:
        """Decrypts a data key. Raises `UnknownKeyError` for an unknown key id, and `DecryptionError` if it was changed."""
        ...


class StaticKeys:
    """Keys of 32 random bytes by their ids, of which `current` wraps the data keys of new messages.

    Wraps with AES key wrap (RFC 3394), which needs no nonce, so that a key has no limit of messages. Raises
    `ConfigurationError` for an unknown `current`, an invalid key id, and a key of another length.
    """

    def __init__(self, keys: Mapping[str, bytes], *, current: str) -> None:
        for key_id, key in keys.items():
            if not isinstance(key_id, str) or re.fullmatch(_KEY_ID, key_id) is None:
                given = f"{key_id!r:.210}" if isinstance(key_id, str) else type(key_id).__name__  # bytes may be a key
                raise ConfigurationError(f"a key id must have 1 to 200 letters, digits and _.:/@+-, not {given}")
            if not isinstance(key, bytes) or len(key) != _KEY_BYTES:
                raise ConfigurationError(
                    f"the key {key_id} must be {_KEY_BYTES} bytes, such as those of os.urandom({_KEY_BYTES})"
                )
        if not isinstance(current, str):
            raise ConfigurationError(f"the current key must be the id of one, not {type(current).__name__}")
        if current not in keys:
            raise ConfigurationError(
                f"the current key {current!r} is not among the keys: {', '.join(keys) or 'there are none'}"
            )
        self._keys = dict(keys)
        self._current = current

    def __repr__(self) -> str:
        return f"StaticKeys({', '.join(self._keys)}; current={self._current!r})"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads keys as `2026-11=BASE64,2026-05=BASE64`. The first is the current one.

        Raises `ConfigurationError`, which does not quote the text.
        """
        keys: dict[str, bytes] = {}
        for number, part in enumerate(text.split(","), start=1):
            key_id, _, encoded = part.strip().partition("=")
            try:
                key = b64decode(encoded, validate=True)
            except ValueError:
                key = b""
            if not key or key_id in keys:
                raise ConfigurationError(
                    f"encryption key {number} is not of the form ID=BASE64, or its id occurs twice: "
                    f"write 2026-11=…,2026-05=…, with the current key first"
                )
            keys[key_id] = key
        return cls(keys, current=next(iter(keys)))

    def wrap(self, data_key: bytes) -> WrappedKey:
        """See `KeyProvider.wrap`."""
        return WrappedKey(self._current, aes_key_wrap(self._keys[self._current], data_key))

    def unwrap(self, key_id: str, wrapped: bytes) -> bytes:
        """See `KeyProvider.unwrap`."""
        key = self._keys.get(key_id)
        if key is None:
            raise UnknownKeyError(
                f"the body is encrypted with the key {key_id!r}, which this process does not have: add it to the keys, then "
                f"requeue what has become a dead letter"
            )
        try:
            return aes_key_unwrap(key, wrapped)
        except (InvalidUnwrap, ValueError):  # ValueError: an impossible length
            raise DecryptionError(
                f"the data key of the message was not wrapped with the key {key_id!r}, or has changed"
            ) from None


@dataclass(frozen=True, slots=True)
class Encryption:
    """Encrypts bodies with data keys that `keys` wraps. Stateless, and safe to share between publishers and workers."""

    keys: KeyProvider

    def __post_init__(self) -> None:
        if not callable(getattr(self.keys, "wrap", None)) or not callable(getattr(self.keys, "unwrap", None)):
            # Without its value, which may be a key.
            raise ConfigurationError(
                f"keys must have the methods of outbox.encryption.KeyProvider, not be {type(self.keys).__name__}"
            )
        if iscoroutinefunction(self.keys.wrap) or iscoroutinefunction(self.keys.unwrap):
            raise ConfigurationError(
                f"wrap and unwrap of {type(self.keys).__name__} must not be async: they are called in the middle of publishing"
            )

    def encrypt(self, body: bytes, *, message_id: str) -> tuple[bytes, str]:
        """Returns the encrypted body of a message, 16 bytes longer, and the value of its header `x-encryption`.

        Raises `ConfigurationError` for a key provider that breaks its contract, and the errors of the provider.
        """
        data_key, nonce = os.urandom(_KEY_BYTES), os.urandom(_NONCE_BYTES)
        key_id, wrapped = self.keys.wrap(data_key)
        header = f"v=1;alg={_ALGORITHM};kid={key_id};key={b64encode(wrapped).decode()};nonce={b64encode(nonce).decode()}"
        if _HEADER.fullmatch(header) is None:
            raise ConfigurationError(
                f"the key provider returned an invalid key id or wrapped key for {message_id}: {key_id!r:.210}"
            )
        return AESGCM(data_key).encrypt(nonce, body, _associated_data(key_id, message_id)), header

    def decrypt(self, body: bytes, header: object, *, message_id: str) -> bytes:
        """Returns the plain body of a message with this header `x-encryption`.

        Raises `UnknownKeyError` for a key that the provider does not know, `DecryptionError` if the body, the header or the
        message id is not that of the encryption, and the errors of the provider.
        """
        found = _HEADER.fullmatch(header) if isinstance(header, str) else None
        if found is None:
            raise DecryptionError(f"the header {ENCRYPTION!r} is not of a form that this release knows: {header!r:.60}")
        key_id = found["kid"]
        try:
            wrapped, nonce = b64decode(found["key"], validate=True), b64decode(found["nonce"], validate=True)
        except ValueError:
            raise DecryptionError(f"the header {ENCRYPTION!r} is not valid base64") from None
        data_key = self.keys.unwrap(key_id, wrapped)
        try:
            return AESGCM(data_key).decrypt(nonce, body, _associated_data(key_id, message_id))
        except (InvalidTag, ValueError):  # ValueError: a data key of an impossible length
            raise DecryptionError(
                f"the body cannot be decrypted: it, its header, or the message id {message_id!r} is not that of the encryption"
            ) from None

    def has_key(self, header: object) -> bool:
        """Whether the provider unwraps the data key in a header `x-encryption`. Says nothing about the body."""
        found = _HEADER.fullmatch(header) if isinstance(header, str) else None
        try:
            return found is not None and bool(self.keys.unwrap(found["kid"], b64decode(found["key"], validate=True)))
        except Exception:  # noqa: BLE001  the errors of a provider are its own, and none of them is a key
            return False


def _associated_data(key_id: str, message_id: str) -> bytes:
    # The id is all that a message keeps for good: an operator may change its routing key, its target queue and its headers.
    return f"v=1;alg={_ALGORITHM};kid={key_id};id={message_id}".encode()
