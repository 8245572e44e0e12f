"""`python -m app` runs everything in one process and prints links; `python -m app migrate` creates or upgrades the tables."""

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
from outbox.admin.ui import is_built
from outbox.cli.command import CliError
from outbox.cli.logs import configure_logging
from outbox.errors import ConfigurationError, OutboxError

USUAL_PORT = 8000
_PORTS_TO_TRY = 100
_COMMANDS = ("run", "migrate")
_ORDER = '{"customer": "ada@example.com", "sku": "book", "quantity": 1}'


def main(arguments: Sequence[str] = ()) -> int:
    """Runs the service until Ctrl-C, or creates the tables. Returns the exit code."""
    command = arguments[0] if arguments else "run"
    if command not in _COMMANDS or len(arguments) > 1:
        click.echo(f"usage: python -m app [{'|'.join(_COMMANDS)}]", err=True)
        return 2
    try:
        settings = with_development_default(read_settings(migrate=True))
        configure_logging(settings.log_level, settings.log_format)
        return _migrate(settings) if command == "migrate" else _run(settings)
    except OutboxError as error:
        CliError(str(error)).show()
        return 1


def print_step(topic: str, text: str) -> None:
    """Prints one startup step as a line with its topic."""
    click.echo(f"  {click.style(f'{topic:<9}', bold=True)} {text}")


def with_development_default(settings: Settings) -> Settings:
    """Turns on development mode, unless the settings set it or contain admin tokens."""
    if settings.development is None and not settings.admin_tokens:
        return settings.model_copy(update={"development": True})
    return settings


def suggested_command() -> str:
    """Returns the path of this environment's `outbox` script, relative to the current folder if possible."""
    script, here = Path(sys.executable).with_name("outbox"), Path.cwd()
    return str(script.relative_to(here)) if script.is_relative_to(here) else "outbox"


def _migrate(settings: Settings) -> int:
    async def prepare_only() -> None:
        async with prepared(settings, print_step):
            pass

    asyncio.run(prepare_only())
    return 0


def _run(settings: Settings) -> int:
    click.echo(f"\n{click.style(f'Outbox {outbox.__version__}', bold=True)}\n")
    service = create_service(settings, print_step, show_token=_show_no_token)
    with _listener(settings) as listener:
        server = _Server(service, listener, settings)
        # After shutdown uvicorn raises the signal again; for Ctrl-C that would print a traceback.
        with contextlib.suppress(KeyboardInterrupt):
            server.run(sockets=[listener])
    click.echo("Stopped.")
    return 0


class _Server(uvicorn.Server):
    """A uvicorn server that prints the links when it has started, and a one-sentence error if it cannot start."""

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
        logger.addFilter(self._is_not_duplicate)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts the server and prints the links."""
        try:
            await super().startup(sockets)
        except SystemExit:
            raise ConfigurationError(self._problem() or "the service could not start; see the error above") from None
        click.echo(_welcome(self._link, self._settings))

    def _problem(self) -> str | None:
        problem: str | None = getattr(self._service.state, "problem", None)
        return problem

    def _is_not_duplicate(self, record: logging.LogRecord) -> bool:
        """Whether a log record says more than the one-sentence error."""
        problem = self._problem()
        return problem is None or record.getMessage() not in (problem, "Application startup failed. Exiting.")


def _listener(settings: Settings) -> socket.socket:
    """Listens on the configured port, or on 8000 or the next free port."""
    if settings.http_port is not None:
        try:
            return _listen(settings.http_host, settings.http_port)
        except OSError as error:
            raise ConfigurationError(
                f"cannot listen on {settings.http_host}:{settings.http_port}: {error.strerror}; "
                "set OUTBOX_HTTP_PORT to another port, or unset it to use the next free one"
            ) from error
    for port in range(USUAL_PORT, USUAL_PORT + _PORTS_TO_TRY):
        with contextlib.suppress(OSError):
            listener = _listen(settings.http_host, port)
            if port != USUAL_PORT:
                print_step("Port", f"{port}, because {USUAL_PORT} is taken")
            return listener
    raise ConfigurationError(
        f"no free port from {USUAL_PORT} to {USUAL_PORT + _PORTS_TO_TRY - 1} on {settings.http_host}: "
        "set OUTBOX_HTTP_HOST and OUTBOX_HTTP_PORT"
    )


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=2048)


def _link(host: str, listener: socket.socket) -> str:
    return f"http://{development.local_host(host)}:{listener.getsockname()[1]}"


def _welcome(link: str, settings: Settings) -> str:
    """Returns the links and the commands to try."""
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
    tokens = _token(f"{link}{settings.admin_path}") if settings.development and api else ()
    example = _example(link) if api and settings.runs_example else ()
    return "\n".join(("", *listed, "", *tokens, *example, "  Press Ctrl-C to stop.", ""))


def _dashboard(link: str, settings: Settings) -> str:
    if not is_built():
        return "not built; run `make dashboard`"
    return development.dashboard_link(development.token(), link) if settings.development else f"{link}{development.DASHBOARD}"


def _show_no_token(_token: str, _path: str) -> None:
    """Does nothing: the links, printed when the address is known, contain the token."""


def _token(admin: str) -> tuple[str, ...]:
    with_dashboard = "The first link logs you in. For commands, set its token, valid for this run:"
    without_dashboard = "Admin token, valid for this run:"
    lead = with_dashboard if is_built() else without_dashboard
    return (f"  {lead}", "", *development.usage(development.token(), admin), "")


def _example(link: str) -> tuple[str, ...]:
    return (
        "  Place an order, then follow it with the returned id:",
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
