"""Keeps large bodies in a store outside of the database and the broker, and puts references to them into their messages.

large_bodies = LargeBodies(S3Store("bodies"))
publisher = Publisher(large_bodies=large_bodies)
worker = Worker(…, large_bodies=large_bodies)

The header `x-body-store` of a message has the key, the size and the SHA-256 of its body, and the message's own body is empty.
"""

import asyncio
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    aclosing,
    asynccontextmanager,
    closing,
    contextmanager,
    suppress,
)
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit
from uuid import uuid4

from outbox.core.codec import BODY_STORE, decode_stored, encode_stored
from outbox.core.threads import Threads
from outbox.core.urls import is_host
from outbox.errors import BodyStoreUnavailableError, ConfigurationError, MissingExtraError, StoredBodyError

__all__ = ["BodyStore", "FileStore", "LargeBodies", "S3Store", "StoredObject"]

_T = TypeVar("_T")

ABOVE = 262_144
"""Default size above which a body is stored, in bytes."""
RETENTION = timedelta(days=30)
"""Default time for which a body is kept after no row refers to it any more."""
TIMEOUT = timedelta(seconds=30)
"""Default time limit of each call of a store."""
SETTLED = timedelta(days=1)
"""Age from which a body without a reference counts as such. The transaction that stored a younger one may still be open."""
AT_ONCE = 8
"""Most bodies of one publisher that are stored at the same time."""
MOST_THREADS = 16
"""Most calls of a `FileStore` that run at once in one event loop."""
BATCH = 1_000
"""Bodies that a sweep looks up with one query."""

_UNREFERENCED = ".unreferenced"
_PARTIAL = ".partial"
_NAME = re.compile(rf"(?P<key>[0-9a-f]{{32}})(?P<suffix>|{re.escape(_UNREFERENCED)}|{re.escape(_PARTIAL)})")


class StoredObject(NamedTuple):
    """A name in a store, and when it was last written."""

    name: str
    modified_at: datetime


class BodyStore(Protocol):
    """A place for objects. Names have up to 64 lower case letters, digits and dots, and an object is never changed.

    Each method may be called from any event loop. It raises `BodyStoreUnavailableError` if trying again later may help. Other
    errors are those of the store: they reach the caller of a Publisher, and are failed attempts of a Worker.
    """

    async def put(self, name: str, content: bytes) -> None:
        """Stores an object. It is durable afterwards, and can be read with all its bytes or not at all."""
        ...

    async def get(self, name: str) -> bytes:
        """Returns an object. Raises `StoredBodyError` if there is none."""
        ...

    async def delete(self, name: str) -> None:
        """Deletes an object. Does nothing if there is none."""
        ...

    def list(self) -> AsyncGenerator[StoredObject, None]:
        """Yields all objects, sorted by their names. Those that are written or deleted meanwhile may be missing."""
        ...

    def opened(self) -> AbstractAsyncContextManager[object]:
        """Keeps connections open within the block, for the calls of this event loop. Blocks may overlap."""
        ...


Referenced = Callable[[Sequence[str]], Awaitable[Set[str]]]
"""Returns those of the keys that a row of the database refers to."""


class LargeBodies:
    """Stores bodies of more than `above` bytes in `store`. May be shared by publishers, workers and an admin.

    A sweep keeps a body for `retention` after the last row that refers to it is gone: at least a day, and longer than a message
    may wait at the broker, where no row shows it. Each call of the store may take `timeout`. Raises `ConfigurationError` for
    invalid arguments.
    """

    def __init__(
        self,
        store: BodyStore,
        *,
        above: int = ABOVE,
        retention: timedelta = RETENTION,
        timeout: timedelta = TIMEOUT,
    ) -> None:
        if not all(callable(getattr(store, name, None)) for name in ("put", "get", "delete", "list", "opened")):
            raise ConfigurationError(f"store must have the methods of outbox.large_bodies.BodyStore, not be {store!r:.80}")
        if not isinstance(above, int) or isinstance(above, bool) or above < 0:
            raise ConfigurationError(f"above must be a number of bytes, 0 or more, not {above!r}")
        if not isinstance(retention, timedelta) or retention < SETTLED:
            raise ConfigurationError(f"retention must be a timedelta of at least {SETTLED.days} day, not {retention!r}")
        if not isinstance(timeout, timedelta) or timeout <= timedelta(0):
            raise ConfigurationError(f"timeout must be a timedelta above zero, not {timeout!r}")
        self.store = store
        self.above = above
        self._retention = retention
        self._timeout = timeout

    def __repr__(self) -> str:
        return f"LargeBodies({self.store!r}, above={self.above})"

    @classmethod
    def parse(cls, url: str) -> Self:
        """Reads a store from `file:///folder` or `s3://bucket/prefix`, with all else at its default.

        `s3://bucket/prefix?endpoint_url=…&region_name=…` names another server than that of AWS. Raises `ConfigurationError`,
        also for credentials, which come from AWS's environment, and `MissingExtraError` for S3 without the extra.
        """
        try:
            parts = urlsplit(url)
        except ValueError:  # the parser's message repeats a part of the URL
            parts = urlsplit("")
        options = dict(parse_qsl(parts.query))
        if parts.scheme == "file" and not parts.netloc and parts.path.strip("/"):
            return cls(FileStore(unquote(parts.path)))
        if (
            parts.scheme == "s3"
            and parts.netloc
            and "@" not in parts.netloc
            and not options.keys() - {"endpoint_url", "region_name"}
        ):
            return cls(S3Store(parts.netloc, parts.path.strip("/"), **options))
        raise ConfigurationError(
            "a store of large bodies is file:///folder or s3://bucket/prefix?endpoint_url=…&region_name=…, without credentials"
        )

    def opened(self) -> AbstractAsyncContextManager[object]:
        """Keeps the store's connections open within the block, for the calls of this event loop."""
        return self.store.opened()

    async def put(self, body: bytes) -> str:
        """Stores a body, and returns the value of its message's header `x-body-store`.

        Raises `BodyStoreUnavailableError`, and the errors of the store. Then the body may be stored without a reference, until
        it is swept.
        """
        key = uuid4().hex
        await self._within_limit(self.store.put(key, body))
        return encode_stored(key, body)

    async def get(self, header: object) -> bytes:
        """Returns the body that a header `x-body-store` refers to.

        Raises `StoredBodyError` if it is missing, or is not that of the header, `BodyStoreUnavailableError`, and the errors of
        the store.
        """
        stored = decode_stored(header)
        if stored is None:
            raise StoredBodyError(f"the header {BODY_STORE!r} is not of a form that this release knows: {header!r:.60}")
        body: bytes = await self._within_limit(self.store.get(stored.key))
        found = ""
        if len(body) != stored.size:
            found = f"{len(body):,} bytes instead of {stored.size:,}"
        elif sha256(body).hexdigest() != stored.sha256:
            found = "another SHA-256 than its message says"
        if found:
            raise StoredBodyError(f"the stored body {stored.key} has {found}: restore it, then requeue")
        return body

    async def put_all(self, bodies: Sequence[bytes]) -> list[str]:
        """Stores bodies, several at a time, and returns the header of each. Raises the errors of `put`."""
        headers: list[str] = []
        async with self.opened():
            for start in range(0, len(bodies), AT_ONCE):
                puts = [asyncio.create_task(self.put(body)) for body in bodies[start : start + AT_ONCE]]
                try:
                    headers += await asyncio.gather(*puts)
                finally:
                    for each in puts:
                        each.cancel()
                    await asyncio.wait(puts)
        return headers

    def put_all_sync(self, bodies: Sequence[bytes]) -> list[str]:
        """`put_all` for code that is not async. Runs in a thread with an event loop of its own, and waits for it."""
        # Not in this thread: it may have a loop that runs, as with a sync session in an async function.
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="outbox-large-bodies") as executor:
            return executor.submit(lambda: asyncio.run(self.put_all(bodies))).result()

    async def sweep(self, referenced: Referenced) -> int:
        """Deletes bodies that no row has referred to for the retention, and returns how many.

        The first sweep that finds no reference writes a mark, and a later one deletes. A sweep that finds a reference removes
        the mark. Several processes may sweep at the same time. Raises the errors of `referenced` and of the store.
        """
        deleted, batch = 0, dict[str, dict[str, datetime]]()
        async with self.opened(), aclosing(self.store.list()) as objects:
            while (listed := await self._within_limit(anext(objects, None))) is not None:
                name, modified_at = listed
                found = _NAME.fullmatch(name)
                if found is None:
                    continue
                # A body comes right before its mark, so a batch is complete when the next key begins.
                if found["key"] not in batch and len(batch) >= BATCH:
                    deleted += await self._sweep(batch, referenced)
                    batch = {}
                batch.setdefault(found["key"], {})[found["suffix"]] = modified_at
            return deleted + await self._sweep(batch, referenced)

    async def _sweep(self, batch: Mapping[str, Mapping[str, datetime]], referenced: Referenced) -> int:
        """Sweeps some keys, of which each has the time of its body, and of what belongs to it, by suffix."""
        now, deleted = datetime.now(UTC), 0
        settled = [key for key, times in batch.items() if "" in times and now - times[""] > SETTLED]
        in_use = await referenced(settled) if settled else set()
        for key in settled:
            marked_at = batch[key].get(_UNREFERENCED)
            if key in in_use:
                if marked_at is not None:
                    await self._within_limit(self.store.delete(key + _UNREFERENCED))
            elif marked_at is None:
                await self._within_limit(self.store.put(key + _UNREFERENCED, b""))
            elif now - marked_at > self._retention:
                # The mark last: without it, a sweep that ends in between would begin to count again.
                await self._within_limit(self.store.delete(key))
                await self._within_limit(self.store.delete(key + _UNREFERENCED))
                deleted += 1
        for key, times in batch.items():
            # Marks of bodies that are gone, and what a process that crashed while it wrote has left.
            for suffix, modified_at in times.items():
                if (suffix == _PARTIAL or (suffix and "" not in times)) and now - modified_at > SETTLED:
                    await self._within_limit(self.store.delete(key + suffix))
        return deleted

    async def _within_limit(self, call: Awaitable[Any]) -> Any:
        try:
            async with asyncio.timeout(self._timeout.total_seconds()):
                return await call
        except TimeoutError as error:
            raise BodyStoreUnavailableError(
                f"{self.store!r} did not answer within {self._timeout.total_seconds():g} s"
            ) from error


class FileStore:
    """Keeps objects as files in a folder, which must exist, and which all hosts of publishers and workers share.

    Raises `ConfigurationError` for a folder that does not exist. One that is missing or empty later counts as down.
    A file is written under another name, flushed to the disk, and renamed.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        if not self._path.is_absolute():
            raise ConfigurationError(f"the folder of a FileStore must be an absolute path, not {str(path)!r}")
        if not os.path.isdir(self._path):  # noqa: PTH112  it raises nothing
            raise ConfigurationError(
                f"the folder of a FileStore does not exist: create or mount {str(path)!r}, and start again"
            )
        self._threads = _PerLoop(_threads)

    def __repr__(self) -> str:
        return f"FileStore({str(self._path)!r})"

    async def put(self, name: str, content: bytes) -> None:
        """See `BodyStore.put`."""
        await self._in_thread(partial(self._write, self._path_of(name), content))

    async def get(self, name: str) -> bytes:
        """See `BodyStore.get`. While the folder is missing or empty, it counts as not mounted."""
        content: bytes = await self._in_thread(partial(self._read, self._path_of(name)))
        return content

    async def delete(self, name: str) -> None:
        """See `BodyStore.delete`."""
        with self._unavailable():
            await self._in_thread(partial(self._path_of(name).unlink, missing_ok=True))

    async def list(self) -> AsyncGenerator[StoredObject, None]:
        """See `BodyStore.list`."""
        with self._unavailable():
            for folder in await self._in_thread(lambda: sorted(self._path.glob("[0-9a-z][0-9a-z]"))):
                for found in await self._in_thread(partial(_files, folder)):
                    yield found

    def opened(self) -> AbstractAsyncContextManager[Threads]:
        """See `BodyStore.opened`. There are threads instead of connections: a folder may hang."""
        return self._threads.opened()

    async def _in_thread(self, work: Callable[[], Any]) -> Any:
        async with self.opened() as threads:
            return await threads.call(work)

    def _path_of(self, name: str) -> Path:
        # A name may come from a header that any producer wrote: nothing in it may lead out of the folder.
        if re.fullmatch(r"[0-9a-z]{2}[0-9a-z.]{0,62}", name) is None:
            raise StoredBodyError(f"{name!r:.80} is not the name of a stored body")
        return self._path / name[:2] / name

    def _write(self, path: Path, content: bytes) -> None:
        partial = path.with_name(path.name + _PARTIAL)
        with self._unavailable():
            # Only the folder of the first two letters: a store that is not mounted must not be created on another disk.
            if not path.parent.exists():
                path.parent.mkdir(exist_ok=True)
                _flush(self._path)
            try:
                with partial.open("wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                partial.replace(path)
            except OSError:
                # What was written of it would keep a full disk full until the sweep of the day after.
                with suppress(OSError):
                    partial.unlink()
                raise
            _flush(path.parent)

    def _read(self, path: Path) -> bytes:
        with self._unavailable():
            try:
                return path.read_bytes()
            except FileNotFoundError:
                if not any(self._path.iterdir()):
                    raise BodyStoreUnavailableError(f"{self!r} is empty: mount what it had") from None
        raise StoredBodyError(f"{self!r} has no body {path.name}: restore it from a backup, then requeue the message")

    @contextmanager
    def _unavailable(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise BodyStoreUnavailableError(f"{self!r} cannot be used: {error}") from error


@asynccontextmanager
async def _threads() -> AsyncIterator[Threads]:
    with closing(Threads(MOST_THREADS, "bodies")) as threads:
        yield threads


def _files(folder: Path) -> list[StoredObject]:
    found = []
    for path in sorted(folder.iterdir()):
        with suppress(FileNotFoundError):  # deleted meanwhile
            found.append(StoredObject(path.name, datetime.fromtimestamp(path.stat().st_mtime, UTC)))
    return found


def _flush(folder: Path) -> None:
    """Makes new names in a folder durable. A file's own flush does not."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class S3Store:
    """Keeps objects in a bucket of S3, or of a server with its API, with names that begin with `prefix`.

    Credentials are those that the AWS SDKs find: environment, profile, or role. They need `s3:GetObject`, `s3:PutObject`,
    `s3:DeleteObject`, and `s3:ListBucket`, without which a missing object looks like one that may not be read. Raises
    `MissingExtraError` without the extra `s3`.
    """

    def __init__(
        self, bucket: str, prefix: str = "", *, endpoint_url: str | None = None, region_name: str | None = None
    ) -> None:
        try:
            from aiobotocore.session import get_session
            from aiohttp import ClientPayloadError
            from botocore.exceptions import BotoCoreError, ClientError
        except ModuleNotFoundError as error:
            raise MissingExtraError(purpose="S3Store", extra="s3") from error
        if re.fullmatch(r"[A-Za-z0-9._-]{1,255}|arn:[^/]+", bucket) is None:
            raise ConfigurationError(f"bucket must be the name of a bucket, not {bucket!r:.300}")
        if region_name is not None and re.fullmatch("[A-Za-z0-9-]{1,63}", region_name) is None:
            raise ConfigurationError(f"region_name must be the name of a region, not {region_name!r:.100}")
        try:
            server = urlsplit(endpoint_url or "https://s3")
            is_url = server.scheme in ("http", "https") and is_host(server.netloc)
        except ValueError:
            is_url = False
        if not is_url:
            raise ConfigurationError("endpoint_url must be the URL of a server, such as https://host:9000")
        self._bucket = bucket
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._options = {"endpoint_url": endpoint_url, "region_name": region_name}
        self._session = get_session()
        self._answered: type[Exception] = ClientError
        # aiobotocore passes on what aiohttp raises if the connection is lost within the content of an object.
        self._failures: tuple[type[Exception], ...] = (ClientError, BotoCoreError, ClientPayloadError, OSError)
        # A client belongs to the loop in which it was opened.
        self._clients = _PerLoop[Any](lambda: self._session.create_client("s3", **self._options))

    def __repr__(self) -> str:
        return f"S3Store({self._bucket!r}, {self._prefix!r})"

    async def put(self, name: str, content: bytes) -> None:
        """See `BodyStore.put`."""
        async with self._calling(name) as client:
            await client.put_object(Bucket=self._bucket, Key=self._prefix + name, Body=content)

    async def get(self, name: str) -> bytes:
        """See `BodyStore.get`."""
        async with self._calling(name) as client:
            answer = await client.get_object(Bucket=self._bucket, Key=self._prefix + name)
            async with answer["Body"] as stream:
                content: bytes = await stream.read()
                return content

    async def delete(self, name: str) -> None:
        """See `BodyStore.delete`."""
        async with self._calling(name) as client:
            await client.delete_object(Bucket=self._bucket, Key=self._prefix + name)

    async def list(self) -> AsyncGenerator[StoredObject, None]:
        """See `BodyStore.list`."""
        async with self._calling("") as client:
            pages = client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=self._prefix)
            async for page in pages:
                for each in page.get("Contents", ()):
                    yield StoredObject(each["Key"].removeprefix(self._prefix), each["LastModified"])

    def opened(self) -> AbstractAsyncContextManager[Any]:
        """See `BodyStore.opened`."""
        return self._clients.opened()

    @asynccontextmanager
    async def _calling(self, name: str) -> AsyncIterator[Any]:
        try:
            async with self.opened() as client:
                yield client
        except self._failures as error:
            answer = getattr(error, "response", {}).get("Error", {})
            if isinstance(error, self._answered) and answer.get("Code") == "NoSuchKey":
                raise StoredBodyError(
                    f"{self!r} has no body {name}: restore it from a backup or an earlier version, then requeue the message"
                ) from error
            raise BodyStoreUnavailableError(f"{self!r} cannot be used: {error}") from error


class _PerLoop(Generic[_T]):
    """What all users of an event loop share: opened by `make` for the first of them, and closed after the last one."""

    def __init__(self, make: Callable[[], AbstractAsyncContextManager[_T]]) -> None:
        self._make = make
        self._shared: dict[asyncio.AbstractEventLoop, _Shared[_T]] = {}

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[_T]:
        """Yields it. Raises what opening it raises."""
        loop = asyncio.get_running_loop()
        shared = self._shared.setdefault(loop, _Shared())
        shared.users += 1
        try:
            async with shared.opening:
                if shared.value is None:
                    shared.value = await shared.stack.enter_async_context(self._make())
            yield shared.value
        finally:
            shared.users -= 1
            if shared.users == 0:
                self._shared.pop(loop)
                await shared.stack.aclose()


@dataclass
class _Shared(Generic[_T]):
    """What one event loop has, its users, and what closes it."""

    users: int = 0
    value: _T | None = None
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
