"""What each store promises, and what LargeBodies makes of it: sizes, digests, time limits, and sweeps."""

import asyncio
import os
import re
import threading
from collections.abc import AsyncGenerator, Iterator, Sequence, Set
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from outbox.core.codec import decode_stored, encode_stored
from outbox.errors import BodyStoreUnavailableError, ConfigurationError, StoredBodyError
from outbox.large_bodies import BodyStore, FileStore, LargeBodies, S3Store, StoredObject
from tests.large_bodies.stores import MemoryStore
from tests.servers.certificates import Certificates, over_tls
from tests.servers.moto import CREDENTIALS, REGION, running_moto
from tests.support import eventually

DAY = timedelta(days=1)


@pytest.fixture(scope="module")
def s3_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of S3 that has the bucket `bodies`, with credentials for it in the environment."""
    with running_moto(tmp_path_factory.mktemp("moto")) as server, pytest.MonkeyPatch.context() as environment:
        for name, value in {**CREDENTIALS, "AWS_DEFAULT_REGION": REGION}.items():
            environment.setenv(name, value)

        async def make_bucket() -> None:
            async with S3Store("bodies", endpoint_url=server.endpoint).opened() as client:
                await client.create_bucket(Bucket="bodies", CreateBucketConfiguration={"LocationConstraint": REGION})

        asyncio.run(make_bucket())
        yield server.endpoint


@pytest.fixture(params=["memory", "file", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> BodyStore:
    """Each store, empty."""
    match request.param:
        case "memory":
            return MemoryStore()
        case "file":
            return FileStore(tmp_path)
        case _:
            return S3Store("bodies", tmp_path.name, endpoint_url=request.getfixturevalue("s3_url"))


async def listed(store: BodyStore) -> list[str]:
    return [each.name async for each in store.list()]


async def test_an_object_is_read_as_it_was_written_listed_in_order_and_deleted(store: BodyStore) -> None:
    assert await listed(store) == []
    before = datetime.now(UTC) - timedelta(seconds=5)
    await store.put("b0", b"second")
    await store.put("a1.mark", b"")
    await store.put("a1", os.urandom(300_000))
    await store.put("a1", b"first")
    assert (await store.get("a1"), await store.get("a1.mark"), await store.get("b0")) == (b"first", b"", b"second")
    objects = [each async for each in store.list()]
    assert [each.name for each in objects] == ["a1", "a1.mark", "b0"]
    assert all(before < each.modified_at < datetime.now(UTC) + timedelta(seconds=5) for each in objects)
    for _ in range(2):
        await store.delete("a1")
    with pytest.raises(StoredBodyError, match="a1"):
        await store.get("a1")
    assert await listed(store) == ["a1.mark", "b0"]


async def test_a_body_of_another_size_or_content_is_refused(store: BodyStore) -> None:
    bodies = LargeBodies(store)
    header = await bodies.put(b"hello")
    assert re.fullmatch(r"v=1;key=[0-9a-f]{32};size=5;sha256=2cf24dba5fb0a30e26e83b2ac5b9e29e[0-9a-f]{32}", header)
    assert await bodies.get(header) == b"hello"
    stored = decode_stored(header)
    assert stored is not None
    for changed, what in ((b"hell", "4 bytes instead of 5"), (b"jello", "another SHA-256")):
        await store.put(stored.key, changed)
        with pytest.raises(StoredBodyError, match=what):
            await bodies.get(header)


@pytest.mark.parametrize("header", [None, "", "v=1;key=../../etc/passwd;size=1;sha256=00", "v=2;key=1"])
async def test_a_header_of_another_form_leads_nowhere(header: object, tmp_path: Path) -> None:
    with pytest.raises(StoredBodyError, match="not of a form that this release knows"):
        await LargeBodies(FileStore(tmp_path)).get(header)


@pytest.mark.parametrize("name", ["../a", "a/b", ".a", "", "A1", "a" * 65])
async def test_a_file_store_accepts_no_name_that_leaves_its_folder(name: str, tmp_path: Path) -> None:
    with pytest.raises(StoredBodyError, match="is not the name of a stored body"):
        await FileStore(tmp_path).get(name)


async def test_a_folder_that_is_missing_or_empty_is_away_and_not_without_the_body(tmp_path: Path) -> None:
    (tmp_path / "missing").mkdir()
    missing, empty = FileStore(tmp_path / "missing"), FileStore(tmp_path)
    (tmp_path / "missing").rmdir()
    for call in (missing.get("a1"), missing.put("a1", b""), empty.get("a1")):
        with pytest.raises(BodyStoreUnavailableError):
            await call
    assert not (tmp_path / "missing").exists()


async def test_a_body_for_which_the_disk_has_no_room_leaves_nothing_there(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    await store.put("a0", b"there is room for it")
    # Every byte that is written to this device meets a full disk.
    (tmp_path / "a1" / "a1.partial").parent.mkdir()
    (tmp_path / "a1" / "a1.partial").symlink_to("/dev/full")
    with pytest.raises(BodyStoreUnavailableError, match="No space left on device"):
        await store.put("a1", b"there is none")
    assert await listed(store) == ["a0"]
    await store.put("a1", b"there is again")
    assert await store.get("a1") == b"there is again"


async def test_a_folder_that_hangs_takes_no_threads_of_the_loop_and_keeps_no_process_from_ending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outbox.large_bodies.MOST_THREADS", 2)
    before = set(threading.enumerate())
    bodies = LargeBodies(FileStore(tmp_path), timeout=timedelta(milliseconds=10))
    header = encode_stored("ab" * 16, b"")
    # Reading waits for a writer.
    pipe = tmp_path / "ab" / ("ab" * 16)
    pipe.parent.mkdir()
    os.mkfifo(pipe)
    try:
        async with bodies.opened():
            for _ in range(5):
                with pytest.raises(BodyStoreUnavailableError, match="did not answer"):
                    await bodies.get(header)
            threads = set(threading.enumerate()) - before
            assert len(threads) == 2
            assert all(thread.daemon for thread in threads)
    finally:
        os.close(os.open(pipe, os.O_RDWR))  # lets the readers begin, and end
    await eventually(lambda: not any(thread.is_alive() for thread in threads))


async def test_a_bucket_that_is_missing_or_a_server_that_is_away_are_not_a_missing_body(s3_url: str) -> None:
    for other in (S3Store("nowhere", endpoint_url=s3_url), S3Store("bodies", endpoint_url="http://127.0.0.1:1")):
        with pytest.raises(BodyStoreUnavailableError):
            await LargeBodies(other, timeout=timedelta(seconds=10)).put(b"hello")


async def test_s3_over_tls_is_trusted_by_the_authorities_of_the_environment(
    s3_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificates = Certificates(tmp_path)
    certificates.renew()
    async with over_tls(urlsplit(s3_url).port or 0, certificates) as port:
        store = S3Store("bodies", "tls", endpoint_url=f"https://127.0.0.1:{port}")
        with pytest.raises(BodyStoreUnavailableError, match="CERTIFICATE_VERIFY_FAILED"):
            await store.put("a1", b"hello")
        monkeypatch.setenv("AWS_CA_BUNDLE", str(certificates.authority))
        store = S3Store("bodies", "tls", endpoint_url=f"https://127.0.0.1:{port}")
        await store.put("a1", b"hello")
        assert await store.get("a1") == b"hello"


async def test_a_connection_that_is_lost_within_a_body_is_a_server_that_is_away(
    s3_url: str,
) -> None:
    async def answer_in_part(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nthe first bytes")
        writer.close()

    async with await asyncio.start_server(answer_in_part, "127.0.0.1") as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(BodyStoreUnavailableError, match="cannot be used"):
            await S3Store("bodies", endpoint_url=f"http://127.0.0.1:{port}").get("a1")


async def test_calls_of_one_loop_share_a_client_while_one_is_open(s3_url: str) -> None:
    store = S3Store("bodies", "shared", endpoint_url=s3_url)
    async with store.opened() as client, store.opened() as other:
        assert client is other
        await asyncio.gather(*(store.put(f"a{number}", b"") for number in range(3)))
        async with store.opened() as later:
            assert later is client
    async with store.opened() as fresh:
        assert fresh is not client


async def test_when_one_body_cannot_be_stored_the_others_are_given_up() -> None:
    ended: list[bytes] = []

    class Failing(MemoryStore):
        async def put(self, name: str, content: bytes) -> None:
            if content == b"bad":
                raise BodyStoreUnavailableError("no")
            try:
                await asyncio.sleep(60)
            finally:
                await asyncio.sleep(0)
                ended.append(content)

    with pytest.raises(BodyStoreUnavailableError, match="no"):
        await LargeBodies(Failing()).put_all([b"1", b"bad", b"2"])
    assert sorted(ended) == [b"1", b"2"]


async def test_a_store_that_does_not_answer_in_time_is_away() -> None:
    class Silent(MemoryStore):
        async def get(self, name: str) -> bytes:
            return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

    bodies = LargeBodies(Silent(), timeout=timedelta(milliseconds=20))
    with pytest.raises(BodyStoreUnavailableError, match=r"did not answer within 0\.02 s"):
        await bodies.get(await bodies.put(b""))


async def test_a_sweep_of_a_store_that_does_not_answer_in_time_ends() -> None:
    class Silent(MemoryStore):
        async def list(self) -> AsyncGenerator[StoredObject, None]:
            yield StoredObject("a1", datetime.now(UTC))
            await asyncio.get_running_loop().create_future()

    async with asyncio.timeout(5):
        with pytest.raises(BodyStoreUnavailableError, match=r"did not answer within 0\.02 s"):
            await LargeBodies(Silent(), timeout=timedelta(milliseconds=20)).sweep(Rows())


@pytest.mark.parametrize(
    "arguments",
    [
        {"store": object()},
        {"above": -1},
        {"above": True},
        {"retention": timedelta(hours=23)},
        {"timeout": timedelta(0)},
    ],
)
def test_invalid_arguments_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        LargeBodies(**{"store": MemoryStore(), **arguments})


def test_a_folder_that_does_not_exist_is_refused_at_once(tmp_path: Path) -> None:
    for path in (tmp_path / "bodeis", tmp_path / "file"):
        (tmp_path / "file").touch()
        with pytest.raises(ConfigurationError, match="create or mount"):
            LargeBodies.parse(path.as_uri())


def test_urls_name_stores(tmp_path: Path) -> None:
    (tmp_path / "bo dies").mkdir()
    assert (
        repr(LargeBodies.parse(f"file://{tmp_path}/bo%20dies")) == f"LargeBodies(FileStore('{tmp_path}/bo dies'), above=262144)"
    )
    found = LargeBodies.parse("s3://bucket/a/b?endpoint_url=http://127.0.0.1:9000&region_name=eu-central-1")
    assert repr(found) == "LargeBodies(S3Store('bucket', 'a/b/'), above=262144)"
    refused = ("", "/var/bodies", "file://host/var", "file:///", "s3://", "s3://bucket?color=red", "gs://bucket")
    for url in (*refused, "s3://ada:geheim@bucket", "https://ada:geheim@host/bucket", "s3://ada:geheim@[bucket"):
        with pytest.raises(ConfigurationError, match="is file:///folder or s3://bucket/prefix") as refusal:
            LargeBodies.parse(url)
        assert "geheim" not in str(refusal.value)
    for bucket in ("a b", "bücher", "x" * 256):
        with pytest.raises(ConfigurationError, match="bucket must be the name of a bucket"):
            LargeBodies.parse(f"s3://{bucket}")
    with pytest.raises(ConfigurationError, match="region_name must be the name of a region"):
        LargeBodies.parse("s3://bucket?region_name=eu_central_1")
    assert repr(S3Store("arn:aws:s3:eu-west-1:123456789012:accesspoint:shop")).startswith("S3Store('arn:aws:s3:")
    for server in ("127.0.0.1:9000", "localhost", "http://[127.0.0.1", "http://", "http://h:99999", "http://a:geheim@h:9000"):
        with pytest.raises(ConfigurationError, match="endpoint_url must be the URL of a server"):
            LargeBodies.parse(f"s3://bucket?endpoint_url={server}")


# --- sweeps ----------------------------------------------------------------------------------------------------------------


class Rows:
    """The keys that rows refer to, and what sweeps asked for."""

    def __init__(self, *headers: str) -> None:
        self.keys = {stored.key for header in headers if (stored := decode_stored(header)) is not None}
        self.asked: list[int] = []

    async def __call__(self, keys: Sequence[str]) -> Set[str]:
        self.asked.append(len(keys))
        return self.keys & set(keys)


async def test_a_body_is_deleted_once_no_row_has_referred_to_it_for_the_retention() -> None:
    store = MemoryStore()
    bodies = LargeBodies(store, retention=30 * DAY)
    kept, orphan = await bodies.put(b"kept"), await bodies.put(b"orphan")
    rows = Rows(kept)
    store.age(1_000 * DAY)
    assert await bodies.sweep(rows) == 0  # the first time that its reference is missed
    store.age(29 * DAY)
    assert await bodies.sweep(rows) == 0
    assert await bodies.get(orphan) == b"orphan"
    store.age(2 * DAY)
    assert await bodies.sweep(rows) == 1
    assert await bodies.get(kept) == b"kept"
    assert len(store.objects) == 1


async def test_a_reference_that_comes_back_starts_the_retention_again() -> None:
    store = MemoryStore()
    bodies = LargeBodies(store, retention=30 * DAY)
    header = await bodies.put(b"a dead letter that comes from the broker")
    store.age(2 * DAY)
    await bodies.sweep(Rows())
    store.age(20 * DAY)
    await bodies.sweep(Rows(header))
    assert len(store.objects) == 1
    store.age(20 * DAY)
    for _ in range(2):
        assert await bodies.sweep(Rows()) == 0
    store.age(31 * DAY)
    assert await bodies.sweep(Rows()) == 1
    assert store.objects == {}


async def test_a_body_whose_transaction_may_still_be_open_is_not_even_looked_up() -> None:
    store, rows = MemoryStore(), Rows()
    bodies = LargeBodies(store, retention=DAY)
    await bodies.put(b"new")
    await bodies.sweep(rows)
    assert (rows.asked, len(store.objects)) == ([], 1)


async def test_a_sweep_removes_what_a_crash_left_and_nothing_that_is_not_its_own() -> None:
    store = MemoryStore()
    for name in ("0" * 32 + ".partial", "1" * 32 + ".unreferenced", "readme", "2" * 32 + ".txt"):
        await store.put(name, b"")
    store.age(2 * DAY)
    await LargeBodies(store).sweep(Rows())
    assert sorted(store.objects) == ["2" * 32 + ".txt", "readme"]


async def test_a_sweep_looks_up_many_bodies_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outbox.large_bodies.BATCH", 3)
    store, rows = MemoryStore(), Rows()
    bodies = LargeBodies(store, retention=DAY)
    for _ in range(7):
        await bodies.put(b"")
    store.age(2 * DAY)
    await bodies.sweep(rows)
    store.age(2 * DAY)
    assert await bodies.sweep(rows) == 7
    assert (rows.asked, store.objects) == ([3, 3, 1, 3, 3, 1], {})
