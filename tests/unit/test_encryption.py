"""Bodies are encrypted and decrypted, and anything that was changed in between is refused."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbox import OutboxMessage, Publisher, Worker
from outbox.admin import Admin
from outbox.dead_letters import DeadLetters
from outbox.encryption import Encryption, StaticKeys, WrappedKey
from outbox.engine.index_keys import IndexKeys
from outbox.engine.rows import rows_of
from outbox.errors import ConfigurationError, DecryptionError, EncodingError, UnknownKeyError
from outbox.transports.memory import MemoryBroker
from tests.contract.support import message

OLD, NEW = bytes(range(32)), bytes(range(32, 64))
KEYS = StaticKeys({"2026-11": NEW, "2026-05": OLD}, current="2026-11")
ENCRYPTION = Encryption(KEYS)


@given(st.binary(max_size=2_000), st.text(st.characters(codec="utf-8"), min_size=1, max_size=50))
def test_a_body_comes_back_as_it_was(body: bytes, message_id: str) -> None:
    encrypted, header = ENCRYPTION.encrypt(body, message_id=message_id)
    assert len(encrypted) == len(body) + 16
    assert ENCRYPTION.decrypt(encrypted, header, message_id=message_id) == body


def test_each_message_has_a_data_key_and_a_nonce_of_its_own() -> None:
    made = [ENCRYPTION.encrypt(b"{}", message_id="1") for _ in range(3)]
    assert len({body for body, _ in made}) == 3
    assert len({header.partition(";nonce=")[2] for _, header in made}) == 3
    assert all(header.startswith("v=1;alg=A256GCM;kid=2026-11;key=") for _, header in made)


@given(st.data())
def test_a_changed_byte_of_the_body_is_noticed(data: st.DataObject) -> None:
    encrypted, header = ENCRYPTION.encrypt(b'{"amount": 1}', message_id="1")
    position = data.draw(st.integers(0, len(encrypted) - 1))
    flipped = encrypted[position] ^ data.draw(st.integers(1, 255))
    changed = encrypted[:position] + bytes([flipped]) + encrypted[position + 1 :]
    with pytest.raises(DecryptionError, match="cannot be decrypted"):
        ENCRYPTION.decrypt(changed, header, message_id="1")


def _with(field: str, value: str) -> Callable[[str], str]:
    def change(header: str) -> str:
        return ";".join(f"{field}={value}" if part.startswith(f"{field}=") else part for part in header.split(";"))

    return change


@pytest.mark.parametrize(
    "change",
    [
        _with("v", "2"),
        _with("alg", "A128GCM"),
        _with("kid", "2026-05"),
        _with("kid", "2026-11 "),
        _with("key", "AAAA"),
        _with("key", "A"),
        _with("key", "A" * 56),
        _with("nonce", "A" * 16),
        _with("nonce", "A" * 4),
        lambda header: header[:-1],
        lambda header: f"{header}\n",
        lambda header: f"{header};more=1",
        lambda header: "",
    ],
)
def test_a_changed_header_is_noticed(change: Callable[[str], str]) -> None:
    encrypted, header = ENCRYPTION.encrypt(b"{}", message_id="1")
    with pytest.raises(DecryptionError):
        ENCRYPTION.decrypt(encrypted, change(header), message_id="1")


@pytest.mark.parametrize("header", [1, None, b"v=1", {"v": 1}])
def test_a_header_that_is_not_text_is_refused(header: object) -> None:
    with pytest.raises(DecryptionError, match="not of a form that this release knows"):
        ENCRYPTION.decrypt(b"", header, message_id="1")


def test_a_body_that_was_moved_to_another_message_is_refused() -> None:
    encrypted, header = ENCRYPTION.encrypt(b"{}", message_id="1")
    with pytest.raises(DecryptionError, match="message id '2'"):
        ENCRYPTION.decrypt(encrypted, header, message_id="2")


def test_the_header_of_another_message_does_not_fit() -> None:
    encrypted, _ = ENCRYPTION.encrypt(b"{}", message_id="1")
    _, header = ENCRYPTION.encrypt(b"{}", message_id="1")
    with pytest.raises(DecryptionError):
        ENCRYPTION.decrypt(encrypted, header, message_id="1")


def test_old_messages_are_read_after_a_rotation_until_the_old_key_is_removed() -> None:
    encrypted, header = Encryption(StaticKeys({"2026-05": OLD}, current="2026-05")).encrypt(b"{}", message_id="1")
    assert ENCRYPTION.decrypt(encrypted, header, message_id="1") == b"{}"
    with pytest.raises(UnknownKeyError, match="the key '2026-05', which this process does not have"):
        Encryption(StaticKeys({"2026-11": NEW}, current="2026-11")).decrypt(encrypted, header, message_id="1")


def test_another_key_with_the_same_id_is_noticed() -> None:
    encrypted, header = ENCRYPTION.encrypt(b"{}", message_id="1")
    with pytest.raises(DecryptionError, match="was not wrapped with the key '2026-11'"):
        Encryption(StaticKeys({"2026-11": OLD}, current="2026-11")).decrypt(encrypted, header, message_id="1")


class KeyService:
    """A provider whose wrapped keys are numbers of its own, like those of a key service that returns references."""

    def __init__(self, key_id: str = "arn:aws:kms:eu-west-1:1:key/2") -> None:
        self.key_id = key_id
        self.kept: list[bytes] = []

    def wrap(self, data_key: bytes) -> WrappedKey:
        self.kept.append(data_key)
        return WrappedKey(self.key_id, str(len(self.kept) - 1).encode())

    def unwrap(self, key_id: str, wrapped: bytes) -> bytes:
        return self.kept[int(wrapped)]


def test_a_key_service_can_wrap_the_data_keys() -> None:
    encryption = Encryption(KeyService())
    encrypted, header = encryption.encrypt(b"{}", message_id="1")
    assert ";kid=arn:aws:kms:eu-west-1:1:key/2;" in header
    assert encryption.decrypt(encrypted, header, message_id="1") == b"{}"


def test_a_key_id_that_no_header_could_carry_is_refused_when_a_message_is_encrypted() -> None:
    with pytest.raises(ConfigurationError, match="invalid key id or wrapped key"):
        Encryption(KeyService("a;b")).encrypt(b"{}", message_id="1")


def test_keys_are_read_from_text_with_the_current_one_first() -> None:
    text = "2026-11=ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=, 2026-05=AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
    keys = StaticKeys.parse(text)
    assert repr(keys) == "StaticKeys(2026-11, 2026-05; current='2026-11')"
    encrypted, header = Encryption(keys).encrypt(b"{}", message_id="1")
    assert ENCRYPTION.decrypt(encrypted, header, message_id="1") == b"{}"


@pytest.mark.parametrize("text", ["", "a", "a=", "a=%%", "=AAAA", "a=c2VjcmV0", "a=c2VjcmV0,a=c2VjcmV0"])
def test_the_error_of_keys_that_cannot_be_read_does_not_show_them(text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        StaticKeys.parse(text)
    assert "c2VjcmV0" not in str(caught.value)
    assert "secret" not in str(caught.value)


def test_keys_are_checked() -> None:
    with pytest.raises(ConfigurationError, match="the key a must be 32 bytes"):
        StaticKeys({"a": b"short"}, current="a")
    with pytest.raises(ConfigurationError, match="the current key 'b' is not among the keys: a"):
        StaticKeys({"a": NEW}, current="b")
    with pytest.raises(ConfigurationError, match="a key id must have"):
        StaticKeys({"a;b": NEW}, current="a;b")


def test_arguments_are_checked_when_objects_are_created() -> None:
    with pytest.raises(ConfigurationError, match="keys must have the methods"):
        Encryption({"a": NEW})  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=r"must be an outbox\.encryption\.Encryption"):
        Publisher(encryption=KEYS)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=r"must be an outbox\.encryption\.Encryption"):
        Worker(broker=MemoryBroker(), encryption=KEYS)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=r"must be an outbox\.encryption\.Encryption"):
        Admin("postgresql://host/shop", encryption=KEYS)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=r"must be an outbox\.encryption\.Encryption"):
        DeadLetters("postgresql://host/shop", encryption=KEYS)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=r"must be an outbox\.large_bodies\.LargeBodies"):
        DeadLetters("postgresql://host/shop", large_bodies="bodies")  # type: ignore[arg-type]


def test_an_async_key_provider_is_refused() -> None:
    class Later(KeyService):
        async def unwrap(self, key_id: str, wrapped: bytes) -> bytes:  # type: ignore[override]
            return super().unwrap(key_id, wrapped)

    with pytest.raises(ConfigurationError, match="wrap and unwrap of Later must not be async"):
        Encryption(Later())  # type: ignore[arg-type]


KEY = b"the secret key"


@pytest.mark.parametrize("given", [KEY, {"a": KEY}, KEY.decode()])
@pytest.mark.parametrize(
    "take",
    [
        Encryption,
        lambda given: Publisher(encryption=given),
        lambda given: Worker(broker=MemoryBroker(), encryption=given),
        lambda given: Admin("postgresql://host/shop", encryption=given),
        lambda given: DeadLetters("postgresql://host/shop", encryption=given),
    ],
)
def test_the_error_of_a_key_in_place_of_what_is_made_of_it_does_not_show_it(take: Callable[[Any], object], given: Any) -> None:
    with pytest.raises(ConfigurationError, match=rf"\b{type(given).__name__}$") as caught:
        take(given)
    assert "secret" not in str(caught.value)


def test_the_error_of_a_key_in_place_of_its_id_does_not_show_it() -> None:
    with pytest.raises(ConfigurationError, match=r"a key id must have .* not bytes") as caught:
        StaticKeys({KEY: "a"}, current="a")  # type: ignore[dict-item]
    assert "secret" not in str(caught.value)
    with pytest.raises(ConfigurationError, match="the current key must be the id of one, not bytes") as caught:
        StaticKeys({"a": NEW}, current=KEY)  # type: ignore[arg-type]
    assert "secret" not in str(caught.value)


def test_a_row_keeps_its_headers_and_its_content_type() -> None:
    plain = OutboxMessage("order.placed", {"id": 1}, headers={"tenant": "é"})
    (row,) = rows_of([plain], encrypt=ENCRYPTION.encrypt)
    assert row.content_type == "application/json"
    assert row.headers is not None
    assert row.headers.startswith('{"tenant": "é", "x-encryption": "v=1;')


def test_applications_cannot_set_the_header() -> None:
    with pytest.raises(EncodingError, match=r"set by Publisher\(encryption=…\)"):
        rows_of([OutboxMessage("order.placed", {}, headers={"X-Encryption": "v=1"})])


def test_no_index_keys_are_taken_from_an_encrypted_body() -> None:
    # It never looks like JSON, but nothing may depend on that.
    sent = replace(message("order.placed", b'{"order_id": "A-1"}'), headers={"x-encryption": "v=1"})
    assert IndexKeys.of(["$.order_id"]).values(sent) == []
