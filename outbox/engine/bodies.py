"""Opens bodies that are encrypted or stored elsewhere, and writes edited ones as their messages have them, for operators."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from outbox.core.codec import BODY_STORE, ENCRYPTION, body_headers
from outbox.core.urls import redacted
from outbox.errors import BodyStoreUnavailableError, KeysUnavailableError, OutboxError, RefusedError, UnknownKeyError

if TYPE_CHECKING:
    from outbox.encryption import Encryption, KeyProvider, WrappedKey
    from outbox.large_bodies import LargeBodies

_log = logging.getLogger("outbox")

_NO_KEYS = (
    "the body is encrypted, and this process has no keys, so it cannot be edited: set OUTBOX_ENCRYPTION_KEYS or encryption=…, "
    "or requeue the message as it is"
)
_NO_STORE = (
    "the body is in a store of large bodies, and this process has none, so it cannot be edited: set OUTBOX_LARGE_BODIES_URL or "
    "large_bodies=…, or requeue the message as it is"
)


@dataclass(frozen=True, slots=True)
class Bodies:
    """The keys and the store that a process has; None: it has none."""

    encryption: "Encryption | None" = None
    large_bodies: "LargeBodies | None" = None

    async def read(self, body: bytes, headers: Mapping[str, Any] | None, message_id: str | None) -> bytes:
        """Returns the body of a message as its publisher gave it.

        Raises `UnknownKeyError` and `BodyStoreUnavailableError`, also without keys or store, `DecryptionError`,
        `StoredBodyError`, and the errors of the key provider and the store.
        """
        own = body_headers(headers)
        if BODY_STORE in own:
            if self.large_bodies is None:
                raise BodyStoreUnavailableError("the body is in a store of large bodies, and this process has none")
            body = await self.large_bodies.get(own[BODY_STORE])
        if ENCRYPTION in own:
            if self.encryption is None:
                raise UnknownKeyError("the body is encrypted, and this process has no keys")
            body = self.encryption.decrypt(body, own[ENCRYPTION], message_id=message_id or "")
        return body

    async def read_or_keep(
        self, body: bytes, headers: Mapping[str, Any] | None, message_id: str | None
    ) -> tuple[bytes, str | None]:
        """Returns the body as its publisher gave it; or `body`, and why it cannot be read, which is logged, too.

        Call it only where values are revealed.
        """
        try:
            return await self.read(body, headers, message_id), None
        except Exception as error:  # noqa: BLE001  the errors of key providers and stores that the application gives
            reason = str(error) if isinstance(error, OutboxError) else redacted(f"{type(error).__name__}: {error}")
            _log.warning("failed to read the body of %s for an operator: %s", message_id, reason)
            return body, reason

    def can_read(self, headers: Mapping[str, Any] | None) -> bool:
        """Whether this process has the key and the store of a body. The store may still not have the body."""
        own = body_headers(headers)
        return (BODY_STORE not in own or self.large_bodies is not None) and (
            ENCRYPTION not in own or (self.encryption is not None and self.encryption.has_key(own[ENCRYPTION]))
        )

    async def write(
        self, body: bytes, headers: Mapping[str, Any] | str | None, message_id: str | None
    ) -> tuple[bytes, dict[str, Any]]:
        """Returns a new body for the message with these headers, and the headers that belong to the new body.

        It is encrypted, with the current key, if the old one is, and stored if it is large. Raises `RefusedError` if this
        process lacks the keys or the store of the old body, `KeysUnavailableError`, and the errors of the store.
        """
        before = body_headers(headers)
        own: dict[str, Any] = {}
        if ENCRYPTION in before:
            if (encryption := self.encryption_of_new) is None:
                raise RefusedError(_NO_KEYS)
            body, own[ENCRYPTION] = encryption.encrypt(body, message_id=message_id or "")
        if self.large_bodies is None:
            if BODY_STORE in before:
                raise RefusedError(_NO_STORE)
        elif len(body) > self.large_bodies.above:
            own[BODY_STORE] = await self.large_bodies.put(body)
            body = b""
        return body, own

    @property
    def encryption_of_new(self) -> "Encryption | None":
        """How to encrypt new bodies: as `encryption` does, with `KeysUnavailableError` for the errors of its key provider."""
        return None if self.encryption is None else replace(self.encryption, keys=_Keys(self.encryption.keys))


@dataclass(frozen=True, slots=True)
class _Keys:
    """Implements `outbox.encryption.KeyProvider` for what operators write."""

    provider: "KeyProvider"

    def wrap(self, data_key: bytes) -> "WrappedKey":
        try:
            return self.provider.wrap(data_key)
        except OutboxError:
            raise
        except Exception as error:
            reason = redacted(f"{type(error).__name__}: {error}")
            _log.warning("failed to encrypt a body for an operator: %s", reason)
            raise KeysUnavailableError(f"the key provider failed: {reason}") from error

    def unwrap(self, key_id: str, wrapped: bytes) -> bytes:
        return self.provider.unwrap(key_id, wrapped)
