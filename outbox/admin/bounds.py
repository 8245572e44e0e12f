"""How much of a request's body is read."""

from fastapi import Request
from starlette.types import Message

from outbox.admin.problems import Code, Problem

BODY_LIMIT = 4 * 1024 * 1024
"""Bytes of the largest body that is read: an edited message, in base64 and with what is around it."""


def bounded(request: Request) -> Request:
    """The same request, whose body raises `body-too-large` as soon as more than `BODY_LIMIT` of it has come."""
    size = 0

    async def receive() -> Message:
        nonlocal size
        message = await request.receive()
        size += len(message.get("body", b""))
        if size > BODY_LIMIT:
            raise Problem(Code.BODY_TOO_LARGE, f"at most {BODY_LIMIT:,} bytes are read")
        return message

    return Request(request.scope, receive)
