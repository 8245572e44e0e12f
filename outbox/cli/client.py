"""The admin API as the commands use it: a running service over HTTP, or the API's own routes in this process.

Both answer the same requests with the same validation, masking and audit. Without `--url` the routes run in this process on the
database of `--database-url`, for the operating system's user: a user who has the database's password has every right there is.
"""

import asyncio
import getpass
import logging
import sys
import uuid
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from datetime import datetime, timedelta
from functools import wraps
from http import HTTPStatus
from importlib.util import find_spec
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import click
from click.core import ParameterSource

from outbox import __version__
from outbox.cli import options
from outbox.cli.command import CliError
from outbox.cli.options import SECONDS
from outbox.core.codec import encode_instant
from outbox.errors import ConfigurationError, MissingExtraError
from outbox.runtime.environment import secret
from outbox.runtime.settings import PREFIX, arguments_of

if TYPE_CHECKING:
    import httpx

    from outbox.admin import Admin

URL, TOKEN = f"{PREFIX}URL", f"{PREFIX}TOKEN"
LARGEST_PAGE = 200
"""Items of a page, at most."""
LARGEST_BODY = 1 << 30
"""Bytes of a request's body in this process, where no client can exhaust a server's memory."""
_UNAVAILABLE = frozenset({HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT})

connection = options.together(
    options.database,
    options.broker,
    options.setting("management_url", help="RabbitMQ's HTTP API, http://user:password@host:15672, for the depths of queues."),
    options.masking,
    click.option(
        "--url",
        envvar=URL,
        show_envvar=True,
        help=f"A running service, as https://host/outbox, instead of the database; {TOKEN} is the token.",
    ),
    click.option(
        "--timeout",
        type=SECONDS,
        default="30",
        show_default=True,
        help="With --url: how long an answer may take, in seconds.",
    ),
)
"""The options that say which admin API a command asks."""
_OF_THE_DATABASE = (
    "table_name",
    "broker_url",
    "exchange_name",
    "management_url",
    "mask_keys",
    "mask_paths",
    "inbox_retention",
    "actor",
)
"""Options that a service has of its own, so that they are refused together with `--url`."""
_CONNECTION = frozenset({"database_url", "url", "timeout", *_OF_THE_DATABASE})

Work = Callable[..., Awaitable[int | None]]


def with_client(command: Work) -> Callable[..., None]:
    """Gives a command the options of `connection`, and calls it with a `Client` in their place.

    What it returns is the exit code; None is 0. The client connects with the first request, so that a command refuses wrong
    arguments before it waits for anything.
    """

    @connection
    @wraps(command)
    def run(**given: Any) -> None:
        health = {name.removeprefix("health_"): given.pop(name) for name in list(given) if name.startswith("health_")}
        client = _client({name: given.pop(name) for name in _CONNECTION & given.keys()}, health)

        async def call() -> int | None:
            async with client:
                try:
                    return await command(client, **given)
                except KeyError as error:
                    if client.is_in_process:
                        raise
                    # Every answer of the admin has all of its fields, so this one is from something else, or another version.
                    raise client.not_an_admin() from error

        code = asyncio.run(call())
        if code:
            sys.exit(code)

    return run


class ApiError(CliError):
    """The API refused: `status` and `code` say how, for commands that can do something about it."""

    def __init__(self, message: str, *, status: int, code: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class UnavailableError(ApiError):
    """The service, or what it needs, does not answer: it may in a moment."""


class Client(ABC):
    """Sends requests to one admin API. `address` is what error messages call it."""

    is_in_process: bool
    poll_interval: timedelta
    """How often an operation that is followed is looked at."""

    def __init__(self, address: str, timeout: timedelta) -> None:
        self._address = address
        self._timeout = timeout
        self._closing = AsyncExitStack()
        self._http: httpx.AsyncClient | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._http = None
        await self._closing.aclose()

    @abstractmethod
    async def _connect(self, closing: AsyncExitStack) -> "httpx.AsyncClient": ...

    @abstractmethod
    async def run_batch(self, number: int) -> int:
        """Runs a batch of an operation in this process, if it has a database to run it on; how many letters that were."""

    async def get(self, path: str, **parameters: Any) -> Any:
        """The JSON object at the path. Parameters that are None are not sent. Raises `ApiError`."""
        return self._parse(await self._send("GET", path, params=_query(parameters)))

    async def find(self, path: str, **parameters: Any) -> Any | None:
        """As `get`, and None for what the API does not find."""
        try:
            return await self.get(path, **parameters)
        except ApiError as error:
            if error.status == HTTPStatus.NOT_FOUND and error.code:  # without a code no admin has answered
                return None
            raise

    async def download(self, path: str, **parameters: Any) -> bytes | None:
        """The bytes at the path; None for what the API does not find."""
        try:
            return (await self._send("GET", path, params=_query(parameters))).content
        except ApiError as error:
            if error.status == HTTPStatus.NOT_FOUND and error.code:
                return None
            raise

    @asynccontextmanager
    async def stream(self, path: str, **parameters: Any) -> AsyncIterator[AsyncIterator[bytes]]:
        """What is at the path, piece by piece. An answer that breaks off raises `UnavailableError` instead of ending."""
        http = await self._connected()
        import httpx

        with self._translated():
            async with http.stream("GET", path, params=tuple(_query(parameters))) as answer:
                if not answer.is_success:
                    await answer.aread()
                self._require_ours(answer)
                try:
                    yield answer.aiter_bytes()
                except (httpx.RemoteProtocolError, httpx.ReadError) as error:
                    why = f"{self._address} broke off its answer: {str(error) or type(error).__name__}"
                    raise UnavailableError(why, status=0, code="broken_off") from None

    async def post(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The answer to the body, whose values that are None are left out. Sent twice by a proxy, it is done once."""
        headers = {"idempotency-key": uuid.uuid4().hex}
        # Within the values null stays: it may be that of a message's header.
        given = {name: _json(value) for name, value in (body or {}).items() if value is not None}
        return self._parse(await self._send("POST", path, json=given, headers=headers))

    async def delete(self, path: str) -> None:
        """Deletes what is at the path. Raises as `get`."""
        await self._send("DELETE", path)

    async def put(self, path: str, body: Mapping[str, Any]) -> Any:
        """The answer to a PUT. Raises as `get`."""
        return self._parse(await self._send("PUT", path, json=dict(body)))

    async def patch(self, path: str, body: Mapping[str, Any]) -> Any:
        """The answer to the body, whose values that are None are left out."""
        given = {name: _json(value) for name, value in body.items() if value is not None}
        return self._parse(await self._send("PATCH", path, json=given))

    async def page(self, path: str, *, limit: int, **parameters: Any) -> Any:
        """The first page of a list, its `items` made `limit` by as many more pages as that takes."""
        found = dict(await self.get(path, **{**parameters, "limit": min(limit, LARGEST_PAGE)}))
        while found.get("next") is not None and len(found["items"]) < limit:
            left = min(limit - len(found["items"]), LARGEST_PAGE)
            part = await self.get(path, **{**parameters, "limit": left, "cursor": found["next"]})
            found["items"] += part["items"]
            found["next"] = part["next"]
        return found

    def not_an_admin(self) -> ApiError:
        """The error for an answer that is not the admin's."""
        message = f"what answers at {self._address} is not an admin API of this version: check the address"
        return ApiError(message, status=200, code="no-api")

    def _parse(self, answer: "httpx.Response") -> Any:
        try:
            found = answer.json()
        except ValueError:
            raise self.not_an_admin() from None
        if not isinstance(found, dict):
            raise self.not_an_admin()
        return found

    async def _send(self, method: str, path: str, **request: Any) -> "httpx.Response":
        http = await self._connected()
        with self._translated():
            answer = await http.request(method, path, **request)
        self._require_ours(answer)
        return answer

    async def _connected(self) -> "httpx.AsyncClient":
        if self._http is None:
            self._http = await self._connect(self._closing)
        return self._http

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Raises `UnavailableError` for what goes wrong on the way."""
        import httpx

        try:
            yield
        except httpx.TimeoutException:
            seconds = self._timeout.total_seconds()
            raise UnavailableError(f"{self._address} has not answered for {seconds:g} s", status=0, code="timeout") from None
        except httpx.TransportError as error:
            why = str(error) or type(error).__name__
            raise UnavailableError(f"there is no service at {self._address}: {why}", status=0, code="unreachable") from None

    def _require_ours(self, answer: "httpx.Response") -> None:
        if not answer.is_success:
            raise self._refusal(answer)
        if answer.headers.get("content-type", "").startswith("text/html"):
            raise self.not_an_admin()

    def _refusal(self, answer: "httpx.Response") -> ApiError:
        problem: Mapping[str, Any] = {}
        with suppress(ValueError):
            content = answer.json()
            problem = content if isinstance(content, dict) else {}
        status, code = answer.status_code, str(problem.get("code", ""))
        kind = UnavailableError if status in _UNAVAILABLE else ApiError
        if not code:
            return kind(f"{self._address} answers {status}: {_advice(answer)}", status=status, code=code)
        parts = [f"{code}: {problem.get('detail', '')}"]
        if status == HTTPStatus.UNAUTHORIZED:
            parts.append(f"set {TOKEN} to a token of the service, which `outbox token` makes")
        if code == "forbidden":
            parts.append(f"set {TOKEN} to a token of that role")
        if (request_id := problem.get("request_id")) and not self.is_in_process:  # there is a log to look it up in
            parts.append(f"request {request_id}")
        return kind(" ".join("; ".join(parts).split()), status=status, code=code)


class _HttpClient(Client):
    """A running service. Its certificate is checked, and no redirection is followed, so that the token stays with it."""

    is_in_process = False
    poll_interval = timedelta(seconds=1)

    def __init__(self, url: str, timeout: timedelta) -> None:
        super().__init__(url.rstrip("/"), timeout)
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise ConfigurationError("--url is not an address: write https://host/outbox") from None
        if parts.username is not None or parts.password is not None:
            raise ConfigurationError(
                f"--url has a name or a password in it, where others can read it: put a token into {TOKEN}"
            )
        if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
            raise ConfigurationError("--url is the address of a service: write https://host/outbox")
        if parts.query or parts.fragment:
            raise ConfigurationError("--url ends with the admin's prefix, such as /outbox: leave out what follows it")
        self._token = (secret(TOKEN) or "").strip()
        if not (self._token.isascii() and self._token.isprintable()):
            raise ConfigurationError(f"{TOKEN} is not a token: set it to what `outbox token` printed")

    async def _connect(self, closing: AsyncExitStack) -> "httpx.AsyncClient":
        _require("httpx")
        import httpx

        headers = {"user-agent": f"outbox/{__version__}", "accept": "application/json"}
        if self._token:
            headers["authorization"] = f"Bearer {self._token}"
        client = httpx.AsyncClient(base_url=self._address, headers=headers, timeout=self._timeout.total_seconds())
        return await closing.enter_async_context(client)

    async def run_batch(self, number: int) -> int:
        """Nothing: the service's maintenance runs operations."""
        del number
        return 0


_PREFIX = "/outbox"


class InProcessClient(Client):
    """The routes themselves, without a server. `settings` are the options of `connection`; `admin` are arguments of `Admin`."""

    is_in_process = True
    poll_interval = timedelta(milliseconds=200)

    def __init__(self, settings: Mapping[str, Any], **admin: Any) -> None:
        super().__init__("the database", timedelta(minutes=15))  # for httpx: this transport waits as long as the routes do
        self._settings = settings
        self._arguments = admin
        self._admin: Admin | None = None

    async def _connect(self, closing: AsyncExitStack) -> "httpx.AsyncClient":
        _require("httpx", "fastapi", "sqlalchemy")
        import httpx
        from fastapi import FastAPI

        from outbox.admin import Admin, Principal, Role, admin_router
        from outbox.cli.in_process import InProcessTransport

        settings = self._settings
        admin = Admin(
            settings["database_url"],
            broker=settings["broker_url"],
            body_limit=LARGEST_BODY,
            **arguments_of(Admin, settings),
            **self._arguments,
        )
        actor = settings.get("actor")
        if not actor:
            with suppress(OSError, KeyError, ImportError):
                actor = getpass.getuser()
        principal = Principal(f"cli:{actor}" if actor else "cli", Role.ADMIN)
        app = FastAPI(openapi_url=None)
        # Below a prefix FastAPI makes the routes that are asked for, and otherwise all of them at once.
        app.include_router(admin_router(admin, authenticate=lambda: principal), prefix=_PREFIX)

        def has_traceback(record: logging.LogRecord) -> bool:
            return bool(record.exc_info)

        # Of the routes' log only what has a traceback is shown: the rest is what the command prints itself.
        logger = logging.getLogger("outbox")
        logger.addFilter(has_traceback)
        closing.callback(logger.removeFilter, has_traceback)
        self._admin = await closing.enter_async_context(admin)
        async with admin.reading("connecting to the database"):
            pass  # the API answers only that the database is away; this says why
        transport = InProcessTransport(app)
        client = httpx.AsyncClient(
            transport=transport, base_url=f"http://in-process{_PREFIX}", timeout=self._timeout.total_seconds()
        )
        return await closing.enter_async_context(client)

    async def run_batch(self, number: int) -> int:
        """Runs a batch here, next to the maintenance processes that may run others of the same operation."""
        return 0 if self._admin is None else await (await self._admin.dead_letters.runner()).run_once(number)


def _client(settings: Mapping[str, Any], health: Mapping[str, Any]) -> Client:
    """The client that the options ask for; `health` are thresholds. What was typed counts for more than the environment.

    Raises `ConfigurationError` for an address that cannot be one, and a usage error for two of them.
    """
    url, database_typed = settings["url"], _is_typed("database_url")
    if database_typed and _is_typed("url"):
        raise click.UsageError("--url and --database-url exclude each other: give one of them")
    if url and not database_typed:
        for param in click.get_current_context().command.params:
            name = param.name or ""
            if (name in _OF_THE_DATABASE or name.startswith("health_")) and _is_typed(name):
                raise click.UsageError(f"{param.opts[0]} is for a database: with --url the service decides that")
        return _HttpClient(url, settings["timeout"])
    if not settings["database_url"]:
        raise ConfigurationError(
            f"say which database: --database-url, or OUTBOX_DATABASE_URL; or which service: --url, or {URL}"
        )
    if not health:
        return InProcessClient(settings)
    _require("fastapi")
    from outbox.admin import HealthThresholds

    return InProcessClient(settings, thresholds=HealthThresholds(**health))


def _is_typed(name: str) -> bool:
    """Whether the option of that name is on the command line."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def _require(*modules: str) -> None:
    if any(find_spec(module) is None for module in modules):
        raise MissingExtraError(purpose="asking the admin API", extra="cli")


def _query(parameters: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The parameters as text; those of a list one by one."""
    pairs = []
    for name, value in parameters.items():
        for each in value if isinstance(value, list) else [value]:
            match each:
                case None:
                    continue
                case bool():
                    pairs.append((name, str(each).lower()))
                case datetime():
                    pairs.append((name, encode_instant(each)))
                case _:
                    pairs.append((name, str(each)))
    return pairs


def _json(value: Any) -> Any:
    match value:
        case Mapping():
            return {name: _json(each) for name, each in value.items()}
        case datetime():
            return encode_instant(value)
    return value


def _advice(answer: "httpx.Response") -> str:
    """What to do about a refusal that is not the admin's own."""
    if answer.is_redirect:
        return f"it redirects to {answer.headers.get('location', 'nowhere')}, and a token goes only where it was meant to"
    if answer.status_code == HTTPStatus.UNAUTHORIZED:
        return f"it requires a token: set {TOKEN}"
    if answer.status_code == HTTPStatus.NOT_FOUND:
        return "there is no admin at this address, or an older one: with its prefix it is http://host/outbox"
    return answer.reason_phrase or "nothing more"
