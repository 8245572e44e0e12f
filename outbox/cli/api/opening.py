"""The admin that the options name, opened for one command: a service, or its routes here, on the database."""

import asyncio
import getpass
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeVar

from outbox import __version__
from outbox.cli.api.client import Api
from outbox.cli.api.places import NOWHERE, Remote, remote
from outbox.cli.masks import masking_of
from outbox.errors import ConfigurationError, MissingExtraError

T = TypeVar("T")

_LONGEST = timedelta(minutes=15)
"""Limit of an answer of the routes in this process, whose own limits are shorter but for the making of operations."""


def ask(given: dict[str, Any], work: Callable[[Api], Awaitable[T]]) -> T:
    """Does `work` with the admin that the options in `given` name."""

    async def asked() -> T:
        async with opened(given) as api:
            return await work(api)

    return asyncio.run(asked())


@asynccontextmanager
async def opened(given: dict[str, Any]) -> AsyncIterator[Api]:
    """The admin, to be asked within the block. Raises `MissingExtraError` without what it takes."""
    found = remote(given)
    async with over_http(found) if found is not None else _in_process(given) as api:
        yield api


@asynccontextmanager
async def over_http(service: Remote) -> AsyncIterator[Api]:
    """A running service. Its certificate is checked, and no redirection is followed, so that the token stays with it."""
    httpx = _client_library()

    headers = {"user-agent": f"outbox/{__version__}", "accept": "application/json"}
    if service.token is not None:
        headers["authorization"] = f"Bearer {service.token}"
    timeout = service.timeout.total_seconds()
    async with httpx.AsyncClient(base_url=service.url, headers=headers, timeout=timeout) as client:
        api = Api(client, service.url, service.timeout)
        try:
            yield api
        except KeyError as error:  # what every answer of the admin has is missing
            raise api.no_admin() from error


@asynccontextmanager
async def _in_process(given: dict[str, Any]) -> AsyncIterator[Api]:
    """The routes themselves, which are asked as whoever runs this process, and write that down as a service does."""
    from outbox.admin import Admin, Principal, Role, admin_router

    if not given["database_url"]:
        raise ConfigurationError(NOWHERE)
    from fastapi import FastAPI

    httpx = _client_library()
    admin = Admin(
        given["database_url"],
        table_name=given["table_name"],
        broker=given["broker_url"],
        exchange_name=given["exchange_name"],
        management_url=given.get("management_url"),
        masking=masking_of(given),
    )
    principal = Principal(whoever(), Role.ADMIN)
    app = FastAPI(openapi_url=None)
    app.include_router(admin_router(admin, authenticate=lambda: principal))
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with admin, httpx.AsyncClient(transport=transport, base_url="http://here", timeout=None) as client:
        with _only_failures_logged():
            yield Api(client, "the database", _LONGEST, just_opened=True)


def _client_library() -> Any:
    if find_spec("httpx") is None:
        raise MissingExtraError(purpose="asking the admin", extra="cli")
    return import_module("httpx")


def whoever() -> str:
    """What the audit calls the user of this process."""
    try:
        return f"cli:{getpass.getuser()}"
    except (OSError, KeyError, ImportError):
        return "cli"


@contextmanager
def _only_failures_logged() -> Iterator[None]:
    """Of what the routes log only what has a traceback: the rest is what the command says itself."""
    logger = logging.getLogger("outbox")

    def with_traceback(record: logging.LogRecord) -> bool:
        return bool(record.exc_info)

    logger.addFilter(with_traceback)
    try:
        yield
    finally:
        logger.removeFilter(with_traceback)
