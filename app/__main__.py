"""`python -m app`: everything in one process, told step by step, with links at the end. `python -m app migrate`: the tables."""

import asyncio
import contextlib
import logging
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

import click
import uvicorn

import outbox
from app import development
from app.service import Service, create_service
from app.settings import Runs, Settings, read_settings
from app.startup import prepared
from outbox.cli.command import CliError
from outbox.cli.logs import configure_logging
from outbox.errors import ConfigurationError, OutboxError

USUAL_PORT = 8000
_PORTS_TO_TRY = 100
_COMMANDS = ("run", "migrate")
_ORDER = '{"customer": "ada@example.com", "sku": "book", "quantity": 1}'


def main(arguments: Sequence[str] = ()) -> int:
    """Runs the service until Ctrl-C, or creates the tables; the exit status."""
    command = arguments[0] if arguments else "run"
    if command not in _COMMANDS or len(arguments) > 1:
        click.echo(f"usage: python -m app [{'|'.join(_COMMANDS)}]", err=True)
        return 2
    try:
        settings = for_a_terminal(read_settings(migrate=True))
        configure_logging(settings.log_level, settings.log_format)
        return _migrate(settings) if command == "migrate" else _run(settings)
    except OutboxError as error:
        CliError(str(error)).show()
        return 1


def tell_terminal(topic: str, text: str) -> None:
    """One step, as a line that begins with what it is about."""
    click.echo(f"  {click.style(f'{topic:<9}', bold=True)} {text}")


def for_a_terminal(settings: Settings) -> Settings:
    """The same, in development unless they say something else, or who may use the admin."""
    if settings.development is None and not settings.admin_tokens:
        return settings.model_copy(update={"development": True})
    return settings


def suggested_command() -> str:
    """The command `outbox` of this environment, as it can be typed here."""
    beside, here = Path(sys.executable).with_name("outbox"), Path.cwd()
    return str(beside.relative_to(here)) if beside.is_relative_to(here) else "outbox"


def _migrate(settings: Settings) -> int:
    async def prepare_only() -> None:
        async with prepared(settings, tell_terminal):
            pass

    asyncio.run(prepare_only())
    return 0


def _run(settings: Settings) -> int:
    click.echo(f"\n{click.style(f'Outbox {outbox.__version__}', bold=True)}\n")
    service = create_service(settings, tell_terminal, show_token=_shown_with_the_links)
    with _listener(settings) as listener:
        server = _Server(service, listener, settings)
        # uvicorn ends by the signal that ended it; a Ctrl-C is no news to whoever pressed it.
        with contextlib.suppress(KeyboardInterrupt):
            server.run(sockets=[listener])
    click.echo("Everything has ended.")
    return 0


class _Server(uvicorn.Server):
    """uvicorn, which says where it can be reached when that is so, and in a sentence why it cannot."""

    def __init__(self, service: Service, listener: socket.socket, settings: Settings) -> None:
        grace_seconds = max(1, round(settings.grace_period.total_seconds()))
        super().__init__(
            uvicorn.Config(service, log_config=None, access_log=False, lifespan="on", timeout_graceful_shutdown=grace_seconds)
        )
        self._service = service
        self._settings = settings
        self._link = _link(settings.http_host, listener)
        logger = logging.getLogger("uvicorn.error")
        logger.setLevel(logging.WARNING)
        logger.addFilter(self._is_news)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts, and shows the links."""
        try:
            await super().startup(sockets)
        except SystemExit:
            raise ConfigurationError(self._problem() or "the service could not start; see above") from None
        click.echo(_welcome(self._link, self._settings))

    def _problem(self) -> str | None:
        problem: str | None = getattr(self._service.state, "problem", None)
        return problem

    def _is_news(self, record: logging.LogRecord) -> bool:
        """Whether it is not what is said in a sentence anyway."""
        problem = self._problem()
        return problem is None or record.getMessage() not in (problem, "Application startup failed. Exiting.")


def _listener(settings: Settings) -> socket.socket:
    """The port that was asked for, or else 8000, or else the next free one."""
    if settings.http_port is not None:
        try:
            return _listen(settings.http_host, settings.http_port)
        except OSError as error:
            raise ConfigurationError(
                f"cannot listen on {settings.http_host}:{settings.http_port}: {error.strerror}; "
                "choose another OUTBOX_HTTP_PORT, or unset it for the next free one"
            ) from error
    for port in range(USUAL_PORT, USUAL_PORT + _PORTS_TO_TRY):
        with contextlib.suppress(OSError):
            listener = _listen(settings.http_host, port)
            if port != USUAL_PORT:
                tell_terminal("Port", f"{USUAL_PORT} is taken, so it is {port}")
            return listener
    raise ConfigurationError(
        f"none of the ports {USUAL_PORT} to {USUAL_PORT + _PORTS_TO_TRY - 1} of {settings.http_host} is free: "
        "set OUTBOX_HTTP_HOST and OUTBOX_HTTP_PORT"
    )


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=2048)


def _link(host: str, listener: socket.socket) -> str:
    return f"http://{development.reachable(host)}:{listener.getsockname()[1]}"


def _welcome(link: str, settings: Settings) -> str:
    """What to open, and what to try."""
    api = Runs.API in settings.run
    links = {
        "Service": link,
        **({"API docs": f"{link}/docs"} if settings.docs else {}),
        "Health": f"{link}/outbox/health/ready",
    }
    if settings.metrics:
        links["Metrics"] = f"{link}/metrics"
    if api:
        links = {"Dashboard": _dashboard(link, settings), **links}
    listed = [f"  {click.style(f'{name:<9}', bold=True)} {click.style(address, fg='cyan')}" for name, address in links.items()]
    tokens = _token(link) if settings.development and api else ()
    example = _example(link) if api and settings.runs_example else ()
    return "\n".join(("", *listed, "", *tokens, *example, "  Ctrl-C ends everything.", ""))


def _dashboard(link: str, settings: Settings) -> str:
    if not development.has_dashboard():
        return "was not built; `make dashboard` builds it"
    return development.dashboard_link(development.token(), link) if settings.development else f"{link}{development.DASHBOARD}"


def _shown_with_the_links(_token: str) -> None:
    """The welcome shows it, when it is known where the service can be reached."""


def _token(link: str) -> tuple[str, ...]:
    links = "The first link logs you in. Commands take its token too, until this ends:"
    alone = "The admin takes the token of this start, until it ends:"
    lead = links if development.has_dashboard() else alone
    return (f"  {lead}", "", *development.usage(development.token(), link), "")


def _example(link: str) -> tuple[str, ...]:
    return (
        "  Place an order, then watch it with the id that you get:",
        "",
        f"    curl -s {link}/orders \\",
        "      -H 'content-type: application/json' \\",
        f"      -d '{_ORDER}'",
        f"    curl -s {link}/orders/ID",
        "",
        f"  Continuous traffic: {suggested_command()} demo --url {link}",
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
