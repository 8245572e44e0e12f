"""Limits of requests: concurrent reads of one principal, and size and depth of a body."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from fastapi import Request

from outbox.admin.admin import Admin
from outbox.admin.problems import Code, Problem

LONGEST_WAIT = timedelta(seconds=5)
"""How long a request waits for other requests of the same principal."""
MOST_WAITING = 50
"""Waiting requests of one principal. Further ones are refused."""


class Reads:
    """Limits concurrent reads of each principal, for one admin. Further reads wait in order."""

    def __init__(self, admin: Admin) -> None:
        self._most = admin.reads_per_principal
        self._by_principal: dict[str, _Slots] = {}

    async def close(self) -> None:
        """There is nothing to close."""

    @asynccontextmanager
    async def slot(self, principal: str, patience: timedelta | None = None) -> AsyncIterator[None]:
        """Waits for a free slot, and holds it for the block. Raises `too_many_requests` after `patience`.

        The default of `patience` is `LONGEST_WAIT`.
        """
        slots = self._by_principal.setdefault(principal, _Slots(asyncio.Semaphore(self._most)))
        slots.requests += 1
        try:
            # Checked before waiting, so that a flood of requests is refused instead of queued.
            if slots.requests > self._most + MOST_WAITING:
                raise too_many(f"more than {MOST_WAITING} of your requests are waiting")
            try:
                async with asyncio.timeout((patience or LONGEST_WAIT).total_seconds()):
                    await slots.free.acquire()
            except TimeoutError:
                raise too_many(f"{self._most} of your requests are still running") from None
            try:
                yield
            finally:
                slots.free.release()
        finally:
            slots.requests -= 1
            # The host may authenticate any number of principals, so idle ones are dropped.
            if not slots.requests:
                del self._by_principal[principal]


@dataclass(slots=True)
class _Slots:
    free: asyncio.Semaphore
    requests: int = field(default=0)


def too_many(reason: str, *, seconds: int = 2) -> Problem:
    """Returns the problem of a principal's limit, with the time after which to try again."""
    return Problem(Code.TOO_MANY_REQUESTS, f"{reason}: try again", headers={"retry-after": str(seconds)})


BODY_TIMEOUT = timedelta(seconds=30)
"""Time within which the whole body must arrive."""
DEEPEST = 100
"""Levels of nesting that a JSON body may have."""

_JSON = re.compile(r"application/([\w.-]+\+)?json\s*(;.*)?", re.IGNORECASE | re.ASCII)
_LENGTH = re.compile(r"[0-9]{1,20}")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


class DeferredBody(Request):
    """A request whose JSON body is an empty object until `load` reads it.

    No byte is read, and no body rejected, before the dependencies have authenticated the request.
    """

    # FastAPI calls `json` before it runs dependencies, and validates the result after them. So `json` returns an empty dict,
    # and `load` fills the same dict. This works because every body of the API is an object.

    def __init__(self, request: Request) -> None:
        super().__init__(request.scope, request.receive)
        self._fields: dict[str, Any] = {}
        self._raw: bytes | None = None
        self._is_wanted = False

    async def body(self) -> bytes:
        """Returns the bytes of the body, or a placeholder before `load`. FastAPI calls it only for routes that take a body."""
        self._is_wanted = True
        if self._raw is not None:
            return self._raw
        return b"{}" if self._has_body() else b""

    async def json(self) -> Any:
        """Returns the JSON object of the body, which is empty before `load`."""
        return self._fields

    async def load(self, limit: int) -> None:
        """Reads the body. Raises a `Problem` if it exceeds `limit` bytes or is no JSON object."""
        if self._raw is not None:
            return
        if not self._has_body():
            self._raw = b""
            return
        # Refuses an announced length before reading a byte, and a chunked body as soon as it is too large.
        announced = self.headers.get("content-length", "")
        self._require_size(int(announced) if _LENGTH.fullmatch(announced) else 0, limit)
        body = bytearray()
        try:
            async with asyncio.timeout(BODY_TIMEOUT.total_seconds()):
                async for chunk in self.stream():
                    body += chunk
                    self._require_size(len(body), limit)
        except TimeoutError:
            raise Problem(Code.BODY_TOO_SLOW, f"the body must arrive within {BODY_TIMEOUT.seconds} seconds") from None
        self._raw = bytes(body)
        if not self._raw:
            return
        media_type = self.headers.get("content-type", "").strip()
        if _JSON.fullmatch(media_type):
            self._fields.update(_parse(self._raw))
        elif self._is_wanted:
            sent = f"not {media_type[:100]}" if media_type else "which is missing"
            raise _unreadable(f"send JSON with the header Content-Type: application/json, {sent}")

    def _has_body(self) -> bool:
        # HTTP/1.1 announces a body by one of two headers; HTTP/2 and later need neither.
        length = self.headers.get("content-length")
        if length is not None:
            return length != "0"
        return "transfer-encoding" in self.headers or not self.scope.get("http_version", "1.1").startswith("1")

    def _require_size(self, size: int, limit: int) -> None:
        if size > limit:
            raise Problem(Code.BODY_TOO_LARGE, f"the body may have at most {limit:,} bytes")


def _parse(raw: bytes) -> dict[str, Any]:
    try:
        # Python accepts NaN and Infinity, which JSON does not have and PostgreSQL refuses.
        fields = json.loads(raw, parse_constant=_refuse_constant)
    except RecursionError:
        raise _unreadable(_TOO_DEEP) from None
    except ValueError as error:
        raise _unreadable(f"invalid JSON: {error}"[:300]) from None
    if not isinstance(fields, dict):
        raise _unreadable("must be a JSON object")
    # Counting brackets is cheap, and shows for most bodies that the exact check is not needed.
    level: list[Any] = [fields] if raw.count(b"{") + raw.count(b"[") > DEEPEST else []
    for _ in range(DEEPEST):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
    if level:
        raise _unreadable(_TOO_DEEP)
    if _SURROGATE.search(raw):
        try:
            json.dumps(fields, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            # UTF-8 cannot encode it, so no database, log or broker accepts it.
            raise _unreadable("contains an unpaired surrogate") from None
    return fields


_TOO_DEEP = f"JSON may have at most {DEEPEST} levels of nesting"


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is not a JSON number")


def _unreadable(what: str) -> Problem:
    return Problem(Code.INVALID_REQUEST, f"body: {what}", errors=[{"field": "body", "message": what}])
