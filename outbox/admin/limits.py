"""Limits of requests: how many of one principal at a time, how large and how deep a body."""

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
"""How long a request waits for others of the same principal."""
MOST_WAITING = 50
"""Requests of one principal that wait."""


class Reads:
    """The requests that read, for one admin: so many of each principal at a time, and the others in turn."""

    def __init__(self, admin: Admin) -> None:
        self._most = admin.reads_per_principal
        self._of: dict[str, _Turns] = {}

    async def close(self) -> None:
        """There is nothing to close."""

    @asynccontextmanager
    async def turn(self, principal: str, patience: timedelta | None = None) -> AsyncIterator[None]:
        """Waits until it is a request's turn. Raises `too_many_requests` for one that would wait for long.

        `patience` is how long that is; None: `LONGEST_WAIT`.
        """
        turns = self._of.setdefault(principal, _Turns(asyncio.Semaphore(self._most)))
        turns.requests += 1
        try:
            # Before waiting, so that a flood of requests is refused instead of kept.
            if turns.requests > self._most + MOST_WAITING:
                raise too_many(f"more than {MOST_WAITING} requests of yours wait already")
            try:
                async with asyncio.timeout((patience or LONGEST_WAIT).total_seconds()):
                    await turns.free.acquire()
            except TimeoutError:
                raise too_many(f"{self._most} requests of yours are being answered, and took long") from None
            try:
                yield
            finally:
                turns.free.release()
        finally:
            turns.requests -= 1
            # Principals come and go: what no request uses is not kept.
            if not turns.requests:
                del self._of[principal]


@dataclass(slots=True)
class _Turns:
    free: asyncio.Semaphore
    requests: int = field(default=0)


def too_many(reason: str, *, seconds: int = 2) -> Problem:
    """What one principal asks too much of, and when to try again."""
    return Problem(Code.TOO_MANY_REQUESTS, f"{reason}: try again", headers={"retry-after": str(seconds)})


BODY_TIMEOUT = timedelta(seconds=30)
"""Longest wait for a body."""
DEEPEST = 100
"""How deep JSON may be nested."""

_JSON = re.compile(r"application/([\w.-]+\+)?json\s*(;.*)?", re.IGNORECASE | re.ASCII)
_LENGTH = re.compile(r"[0-9]{1,20}")
_HALF_PAIR = re.compile(rb"\\u[dD][89a-fA-F]")


class DeferredBody(Request):
    """A request whose body is an empty object until `load` has read it, and the JSON object that was sent from then on.

    FastAPI takes the body before it runs dependencies, and looks into it after them. So nothing of it is read, nor complained
    about, before the dependencies know who asks; the object that FastAPI has taken is filled then. All our bodies are objects.
    """

    def __init__(self, request: Request) -> None:
        super().__init__(request.scope, request.receive)
        self._fields: dict[str, Any] = {}
        self._raw: bytes | None = None
        self._is_wanted = False

    async def body(self) -> bytes:
        """The bytes that were sent; before `load`, what stands for them. Only routes that take a body ask for it."""
        self._is_wanted = True
        if self._raw is not None:
            return self._raw
        return b"{}" if self._has_body() else b""

    async def json(self) -> Any:
        """The object that was sent; before `load`, the same object without anything in it."""
        return self._fields

    async def load(self, limit: int) -> None:
        """Reads the body. Raises a `Problem` for one of more than `limit` bytes, and for what is no JSON object."""
        if self._raw is not None:
            return
        if not self._has_body():
            self._raw = b""
            return
        # An announced length is refused before a byte is read; without one, as soon as too much has come.
        announced = self.headers.get("content-length", "")
        self._require_size(int(announced) if _LENGTH.fullmatch(announced) else 0, limit)
        body = bytearray()
        try:
            async with asyncio.timeout(BODY_TIMEOUT.total_seconds()):
                async for chunk in self.stream():
                    body += chunk
                    self._require_size(len(body), limit)
        except TimeoutError:
            raise Problem(Code.BODY_TOO_SLOW, f"a body has to come within {BODY_TIMEOUT.seconds} seconds") from None
        self._raw = bytes(body)
        if not self._raw:
            return
        media_type = self.headers.get("content-type", "").strip()
        if _JSON.fullmatch(media_type):
            self._fields.update(_parsed(self._raw))
        elif self._is_wanted:
            came = f"it came as {media_type[:100]}" if media_type else "it came without that header"
            raise _unreadable(f"send JSON, with the header Content-Type: application/json; {came}")

    def _has_body(self) -> bool:
        """HTTP/1.1 says whether there is one; later versions need not."""
        length = self.headers.get("content-length")
        if length is not None:
            return length != "0"
        return "transfer-encoding" in self.headers or not self.scope.get("http_version", "1.1").startswith("1")

    def _require_size(self, size: int, limit: int) -> None:
        if size > limit:
            raise Problem(Code.BODY_TOO_LARGE, f"at most {limit:,} bytes are read")


def _parsed(raw: bytes) -> dict[str, Any]:
    try:
        # Python would read NaN and Infinity, which no other reader of JSON does.
        fields = json.loads(raw, parse_constant=_no_number)
    except RecursionError:
        raise _unreadable(_TOO_DEEP) from None
    except ValueError as error:
        raise _unreadable(f"this is no JSON: {error}"[:300]) from None
    if not isinstance(fields, dict):
        raise _unreadable("a JSON object is wanted")
    # Counting brackets is cheap, and spares most bodies the walk.
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
    if _HALF_PAIR.search(raw):
        try:
            json.dumps(fields, ensure_ascii=False).encode()
        except UnicodeEncodeError:  # no database, no log and no broker takes it
            raise _unreadable("half of a surrogate pair is no character") from None
    return fields


_TOO_DEEP = f"JSON may be nested {DEEPEST} deep"


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number")


def _unreadable(what: str) -> Problem:
    return Problem(Code.INVALID_REQUEST, f"body: {what}", errors=[{"field": "body", "message": what}])
