"""A token for the admin in development: made at the start, the same for all processes of it, and shown on the terminal."""

import argparse
import hashlib
import hmac
import multiprocessing
import os
import sys

import click

from outbox.admin import Role
from outbox.admin.health import PREFIX
from outbox.admin.principals import TokenEntry, entry_for, token_of
from outbox.admin.ui import is_built

NAME = "development"
"""Whom the audit names."""
DASHBOARD = f"{PREFIX}/ui/"
"""Where the service has the dashboard."""


def token() -> str:
    """The token of this start. It is as random as the key that every program has for its own processes.

    uvicorn starts its workers as such processes, so that all of them have the same, and none has to be told.
    """
    key = bytes(multiprocessing.current_process().authkey)
    return token_of(hmac.digest(key, b"outbox development token", hashlib.sha256))


def token_entry() -> TokenEntry:
    """Who that is: an administrator."""
    return entry_for(token(), NAME, Role.ADMIN)


def has_dashboard() -> bool:
    """Whether it was built."""
    return is_built()


def dashboard_link(text: str, service: str) -> str:
    """Logs in whoever opens it: the page takes the token from the fragment, which browsers send to no server."""
    return f"{service}{DASHBOARD}#token={text}"


def usage(text: str, service: str) -> tuple[str, ...]:
    """What can be typed with it; the commands of `outbox` read the same variable."""
    return (
        f"    export OUTBOX_TOKEN={text}",
        f"    curl -s {service}{PREFIX}/backlog \\",
        '      -H "authorization: Bearer $OUTBOX_TOKEN"',
    )


def show_token(text: str) -> None:
    """Writes it to standard error, once for all processes, and into no log, which may be kept."""
    if _is_the_first():
        service = _asked_of_uvicorn()
        link = (f"  Dashboard {dashboard_link(text, service)}", "") if has_dashboard() else ()
        lines = ("", *link, "  Development: the admin takes the token of this start, until it ends.", "")
        click.echo("\n".join((*lines, *usage(text, service), "")), file=sys.stderr)


def _is_the_first() -> bool:
    return multiprocessing.parent_process() is None or multiprocessing.current_process().name.endswith("-1")


def _asked_of_uvicorn() -> str:
    """Where uvicorn was asked to listen, which it tells no application, and does after this."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--host", default=os.environ.get("UVICORN_HOST", "127.0.0.1"))
    parser.add_argument("--port", default=os.environ.get("UVICORN_PORT", "8000"))
    asked, _ = parser.parse_known_args(sys.argv[1:])
    return f"http://{reachable(asked.host)}:{asked.port}"


def reachable(host: str) -> str:
    """How this machine reaches what listens on that host, as a part of an address."""
    return {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
