"""Hosts for the tests: a real uvicorn in a thread of its own, and looking into the outbox from outside."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import asyncpg
import httpx
import uvicorn
from fastapi import FastAPI


@contextmanager
def serving(app: FastAPI) -> Iterator[str]:
    """The address at which `app` is served over HTTP, by uvicorn, in another thread."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="on"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            while thread.is_alive() and not server.started:
                thread.join(0.02)
            assert server.started, "the application did not start"
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(60)
            assert not thread.is_alive()


@asynccontextmanager
async def client_of(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """A client of `app`, served by a real server."""
    stack = contextlib.ExitStack()
    try:
        url = await asyncio.to_thread(stack.enter_context, serving(app))
        # uvicorn closes the connection after a 5xx without saying so in time; a connection is therefore used once.
        async with httpx.AsyncClient(base_url=url, timeout=60, limits=httpx.Limits(max_keepalive_connections=0)) as client:
            yield client
    finally:
        await asyncio.to_thread(stack.close)


async def fetch(url: str, query: str, *arguments: object) -> list[Any]:
    """What another connection sees."""
    connection = await asyncpg.connect(url)
    try:
        return list(await connection.fetch(query, *arguments))
    finally:
        await connection.close()


async def routing_keys(url: str) -> list[str]:
    """The events in the outbox, as another connection sees them."""
    return [row["routing_key"] for row in await fetch(url, "select routing_key from outbox_table order by id")]
