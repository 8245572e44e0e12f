"""Client of the admin API for the commands: calls a running service over HTTP, or the API's routes in this process.

Both apply the same validation, masking and audit. Without `--url` the routes run in this process, on the database of
`--database-url`, as the operating system's user with the role admin: that user has the database's password anyway.
"""

import asyncio
import getpass
import logging
import re
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
from outbox.errors import ConfigurationError, DatabaseUnavailableError, MissingExtraError
from outbox.runtime.environment import secret
from outbox.runtime.settings import PREFIX, arguments_of

if TYPE_CHECKING:
    import httpx

    from outbox.admin import Admin

URL, TOKEN = f"{PREFIX}URL", f"{PREFIX}TOKEN"
LARGEST_PAGE = 200
"""Maximum number of items in a page."""
LARGEST_BODY = 1 << 30
"""Maximum bytes of a request body in this process: large, because no remote client can send one."""
_UNAVAILABLE = frozenset({HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT})

connection = options.combine(
    options.database,
    options.broker,
    options.setting("management_url", help="RabbitMQ's HTTP API, http://user:password@host:15672, the source of queue depths."),
    options.masking,
    click.option(
        "--url",
        envvar=URL,
        show_envvar=True,
        help=f"Use a running service, such as https://host/outbox, instead of the database. {TOKEN} is its token.",
    ),
    click.option(
        "--timeout", type=SECONDS, default="30", show_default=True, help="With --url: maximum wait for a response, in seconds."
    ),
)
"""Options that select the admin API of a command."""
_DATABASE_OPTIONS = (
    "table_name",
    "broker_url",
    "exchange_name",
    "management_url",
    "mask_keys",
    "mask_paths",
    "encryption_keys",
    "large_bodies_url",
    "inbox_retention",
    "actor",
)
"""Options that cannot be combined with `--url`, because the service has its own settings for them."""
_CONNECTION = frozenset({"database_url", "url", "timeout", *_DATABASE_OPTIONS})

_AS_COMMANDS = (
    (r"\b(?:set|use) force\b", "use --force"),
    (r"\bPOST /requeue or /discard with the id (\S+)", r"`outbox dlq requeue \1` or `outbox dlq discard \1`"),
    (r"\bPOST /resume with the scope (\w+) and the name (.+)", r"`outbox resume \1 \2`"),
    (r"\bPOST /resume with the scope (\w+)", r"`outbox resume \1`"),
    (r"\bPOST /deliveries/retry\b", "`outbox deliveries retry`"),
    (r"\bGET /deliveries/(\w+)", r"`outbox deliveries \1`"),
    (r"\bGET /chains/\{tracking_id\}", "`outbox chain`"),
)
"""What advice of the API calls a request or a field, and what the command line calls it."""

Work = Callable[..., Awaitable[int | None]]


def in_commands(advice: str) -> str:
    """Names commands and options in place of the requests and fields of the API."""
    for request, command in _AS_COMMANDS:
        advice = re.sub(request, command, advice)
    return advice


def with_client(command: Work) -> Callable[..., None]:
    """Adds the options of `connection` to a command, and calls it with a `Client` built from them.

    The command's return value is the exit code; None means 0. The client connects on the first request, after the command has
    checked its arguments.
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
                    # The admin API always sends all fields. If one is missing, another program or another version answered.
                    raise client.not_an_admin() from error

        code = asyncio.run(call())
        if code:
            sys.exit(code)

    return run


class ApiError(CliError):
    """The API refused a request. Commands that can recover read `status` and `code`."""

    def __init__(self, message: str, *, status: int, code: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class UnavailableError(ApiError):
    """The service, or a server that it needs, is temporarily unavailable."""


class Client(ABC):
    """Sends requests to one admin API. Error messages name it by `address`."""

    is_in_process: bool
    poll_interval: timedelta
    """Interval between two requests for the progress of an operation."""

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
        """Runs one batch of an operation in this process, if it uses a database. Returns the number of dead letters done."""

    async def get(self, path: str, **parameters: Any) -> Any:
        """Returns the JSON object at the path. Parameters that are None are not sent. Raises `ApiError`."""
        return self._parse(await self._send("GET", path, params=_query(parameters)))

    async def find(self, path: str, **parameters: Any) -> Any | None:
        """Like `get`, but returns None if the API reports that the object does not exist."""
        try:
            return await self.get(path, **parameters)
        except ApiError as error:
            if error.status == HTTPStatus.NOT_FOUND and error.code:  # a 404 without a code is not from the admin API
                return None
            raise

    async def download(self, path: str, **parameters: Any) -> bytes | None:
        """Returns the bytes at the path, or None if the API reports that they do not exist."""
        try:
            return (await self._send("GET", path, params=_query(parameters))).content
        except ApiError as error:
            if error.status == HTTPStatus.NOT_FOUND and error.code:
                return None
            raise

    @asynccontextmanager
    async def stream(self, path: str, **parameters: Any) -> AsyncIterator[AsyncIterator[bytes]]:
        """Streams the bytes at the path. Raises `UnavailableError` if the response is cut off."""
        http = await self._ensure_connected()
        import httpx

        with self._translate_errors():
            async with http.stream("GET", path, params=tuple(_query(parameters))) as answer:
                if not answer.is_success:
                    # The reason is in the body, which a stream has not read yet.
                    await answer.aread()
                self._check_response(answer)
                try:
                    # The caller reads within this block, so a connection that breaks meanwhile raises its error here.
                    yield answer.aiter_bytes()
                except (httpx.RemoteProtocolError, httpx.ReadError) as error:
                    message = f"the response of {self._address} was cut off: {str(error) or type(error).__name__}"
                    raise UnavailableError(message, status=0, code="broken_off") from None

    async def post(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """POSTs the body without its None values and returns the response. Raises `ApiError`."""
        # If a proxy repeats the request, the key makes the service execute it once.
        headers = {"idempotency-key": uuid.uuid4().hex}
        # Only top-level None is an option that was not set. A nested null is data, such as a message header.
        given = {name: _json(value) for name, value in (body or {}).items() if value is not None}
        return self._parse(await self._send("POST", path, json=given, headers=headers))

    async def delete(self, path: str) -> None:
        """Deletes the object at the path. Raises `ApiError`."""
        await self._send("DELETE", path)

    async def put(self, path: str, body: Mapping[str, Any]) -> Any:
        """PUTs the body and returns the response. Raises `ApiError`."""
        return self._parse(await self._send("PUT", path, json=dict(body)))

    async def patch(self, path: str, body: Mapping[str, Any]) -> Any:
        """PATCHes the object with the body, without its None values, and returns the response. Raises `ApiError`."""
        given = {name: _json(value) for name, value in body.items() if value is not None}
        headers = {"idempotency-key": uuid.uuid4().hex}
        return self._parse(await self._send("PATCH", path, json=given, headers=headers))

    async def page(self, path: str, *, limit: int, **parameters: Any) -> Any:
        """Returns a list as one page with up to `limit` items, fetched in as many requests as needed."""
        found = dict(await self.get(path, **{**parameters, "limit": min(limit, LARGEST_PAGE)}))
        while found.get("next") is not None and len(found["items"]) < limit:
            left = min(limit - len(found["items"]), LARGEST_PAGE)
            part = await self.get(path, **{**parameters, "limit": left, "cursor": found["next"]})
            found["items"] += part["items"]
            found["next"] = part["next"]
        return found

    def not_an_admin(self) -> ApiError:
        """Returns the error for a response that is not from the admin API."""
        message = f"{self._address} is not an Outbox admin API, or has another version: check the address"
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
        http = await self._ensure_connected()
        # The client would resolve these as parts of the address, and the answer would be that of another path.
        path = "/".join("%2E" * len(part) if part in (".", "..") else part for part in path.split("/"))
        with self._translate_errors():
            answer = await http.request(method, path, **request)
        self._check_response(answer)
        return answer

    async def _ensure_connected(self) -> "httpx.AsyncClient":
        if self._http is None:
            self._http = await self._connect(self._closing)
        return self._http

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Turns network errors into `UnavailableError`."""
        import httpx

        try:
            yield
        except httpx.TimeoutException:
            seconds = self._timeout.total_seconds()
            raise UnavailableError(f"{self._address} did not respond within {seconds:g} s", status=0, code="timeout") from None
        except httpx.TransportError as error:
            reason = str(error) or type(error).__name__
            raise UnavailableError(f"cannot reach {self._address}: {reason}", status=0, code="unreachable") from None

    def _check_response(self, answer: "httpx.Response") -> None:
        if answer.is_success:
            if answer.headers.get("content-type", "").startswith("text/html"):
                raise self.not_an_admin()
            return
        problem: Mapping[str, Any] = {}
        with suppress(ValueError):
            content = answer.json()
            problem = content if isinstance(content, dict) else {}
        status, code = answer.status_code, str(problem.get("code", ""))
        kind = UnavailableError if status in _UNAVAILABLE else ApiError
        if not code:
            raise kind(f"{self._address} responded with status {status}: {_hint(answer)}", status=status, code=code)
        parts = [f"{code}: {in_commands(str(problem.get('detail', '')))}"]
        if status == HTTPStatus.UNAUTHORIZED:
            parts.append(f"set {TOKEN} to a token that the service accepts; `outbox token` creates one")
        if code == "forbidden":
            parts.append(f"set {TOKEN} to a token of that role")
        if (request_id := problem.get("request_id")) and not self.is_in_process:  # the service's log has it
            parts.append(f"request {request_id}")
        raise kind(" ".join("; ".join(parts).split()), status=status, code=code)


class _HttpClient(Client):
    """Calls a running service. Checks certificates and follows no redirects, which could send the token to another host."""

    is_in_process = False
    poll_interval = timedelta(seconds=1)

    def __init__(self, url: str, timeout: timedelta) -> None:
        super().__init__(url.rstrip("/"), timeout)
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise ConfigurationError("--url is not a valid URL: write https://host/outbox") from None
        if parts.username is not None or parts.password is not None:
            raise ConfigurationError(f"--url must not contain a user or a password; set {TOKEN} instead")
        if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
            raise ConfigurationError("--url must be the http or https address of a service: write https://host/outbox")
        if parts.query or parts.fragment:
            raise ConfigurationError("--url must end with the admin's prefix, such as /outbox: remove the query and fragment")
        self._token = (secret(TOKEN) or "").strip()
        if not (self._token.isascii() and self._token.isprintable()):
            raise ConfigurationError(f"{TOKEN} is not a token: set it to a token that `outbox token` printed")

    async def _connect(self, closing: AsyncExitStack) -> "httpx.AsyncClient":
        _require("httpx")
        import httpx

        headers = {"user-agent": f"outbox/{__version__}", "accept": "application/json"}
        if self._token:
            headers["authorization"] = f"Bearer {self._token}"
        client = httpx.AsyncClient(base_url=self._address, headers=headers, timeout=self._timeout.total_seconds())
        return await closing.enter_async_context(client)

    async def run_batch(self, number: int) -> int:
        """Does nothing: the service's maintenance runs operations."""
        del number
        return 0


_PREFIX = "/outbox"


class InProcessClient(Client):
    """Calls the routes in this process. `settings` are the options of `connection`; `admin` are arguments of `Admin`."""

    is_in_process = True
    poll_interval = timedelta(milliseconds=200)

    def __init__(self, settings: Mapping[str, Any], **admin: Any) -> None:
        super().__init__("the database", timedelta(minutes=15))  # long: the routes have their own timeouts
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
        # With a prefix FastAPI builds each route on its first request instead of all of them at the start.
        app.include_router(admin_router(admin, authenticate=lambda: principal), prefix=_PREFIX)

        def has_traceback(record: logging.LogRecord) -> bool:
            return bool(record.exc_info)

        # The command prints expected errors itself, so only log records with a traceback are new to the user.
        logger = logging.getLogger("outbox")
        logger.addFilter(has_traceback)
        closing.callback(logger.removeFilter, has_traceback)
        self._admin = await closing.enter_async_context(admin)
        async with admin.reading("connecting to the database"):
            pass  # fails with the reason; the API would only report that the database is unavailable
        transport = InProcessTransport(app)
        client = httpx.AsyncClient(
            transport=transport, base_url=f"http://in-process{_PREFIX}", timeout=self._timeout.total_seconds()
        )
        return await closing.enter_async_context(client)

    async def run_batch(self, number: int) -> int:
        """Runs one batch here. Maintenance processes may run other batches of the same operation at the same time.

        Raises `CliError` if this role may not: waiting would not help.
        """
        from asyncpg import InsufficientPrivilegeError

        try:
            return 0 if self._admin is None else await (await self._admin.dead_letters.runner()).run_once(number)
        except DatabaseUnavailableError as error:
            if not isinstance(error.__cause__, InsufficientPrivilegeError):
                raise
            raise CliError(
                f"{error.__cause__}: operation {number} waits for maintenance, or for `outbox dlq resume {number}` with a role "
                "that has the privilege"
            ) from error


def _client(settings: Mapping[str, Any], health: Mapping[str, Any]) -> Client:
    """Builds the client for the options; `health` are thresholds. Options on the command line override the environment.

    Raises `ConfigurationError` for an invalid address, and a usage error if both kinds of address are on the command line.
    """
    url, database_typed = settings["url"], _is_typed("database_url")
    if database_typed and _is_typed("url"):
        raise click.UsageError("--url and --database-url cannot be combined: use one of them")
    if url and not database_typed:
        for param in click.get_current_context().command.params:
            name = param.name or ""
            if (name in _DATABASE_OPTIONS or name.startswith("health_")) and _is_typed(name):
                raise click.UsageError(f"{param.opts[0]} cannot be combined with --url: the service has its own setting")
        return _HttpClient(url, settings["timeout"])
    if not settings["database_url"]:
        raise ConfigurationError(
            f"no database and no service configured: set OUTBOX_DATABASE_URL or {URL}, or give --database-url or --url"
        )
    options.check_urls(settings)
    if not health:
        return InProcessClient(settings)
    _require("fastapi")
    from outbox.admin import HealthThresholds

    return InProcessClient(settings, thresholds=HealthThresholds(**health))


def _is_typed(name: str) -> bool:
    """Whether the option is on the command line, as opposed to the environment."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def _require(*modules: str) -> None:
    if any(find_spec(module) is None for module in modules):
        raise MissingExtraError(purpose="This command", extra="cli")


def _query(parameters: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Converts parameters to query pairs; a list becomes one pair for each value."""
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


def _hint(answer: "httpx.Response") -> str:
    """Explains an error response that is not from the admin API."""
    if answer.is_redirect:
        return f"it redirects to {answer.headers.get('location', 'nowhere')}; redirects are not followed, to protect the token"
    if answer.status_code == HTTPStatus.UNAUTHORIZED:
        return f"a token is required: set {TOKEN}"
    if answer.status_code == HTTPStatus.NOT_FOUND:
        return "no admin API at this path, or an older version: the address includes the prefix, as http://host/outbox"
    return answer.reason_phrase or "no reason given"
