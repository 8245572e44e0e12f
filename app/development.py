"""The admin token of development mode: created at startup, shared by all worker processes, and printed to the terminal."""

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
"""Name of the principal in the audit log."""
DASHBOARD = f"{PREFIX}/ui/"
"""Path of the dashboard."""


def token() -> str:
    """Returns the token of this run, derived from the random authentication key of `multiprocessing`."""
    # uvicorn starts its workers with multiprocessing. They inherit the key, so all workers derive the same token.
    key = bytes(multiprocessing.current_process().authkey)
    return token_of(hmac.digest(key, b"outbox development token", hashlib.sha256))


def token_entry() -> TokenEntry:
    """Returns the token's entry, with the role admin."""
    return entry_for(token(), NAME, Role.ADMIN)


def dashboard_link(text: str, service: str) -> str:
    """Returns a link that logs in with the token."""
    # The token is in the fragment, which browsers never send to a server.
    return f"{service}{DASHBOARD}#token={text}"


def usage(text: str, admin: str) -> tuple[str, ...]:
    """Returns example commands with the token; the `outbox` commands read the same variable. `admin` is the admin's address."""
    return (
        f"    export OUTBOX_TOKEN={text}",
        f"    curl -s {admin}/backlog \\",
        '      -H "authorization: Bearer $OUTBOX_TOKEN"',
    )


def show_token(text: str, path: str) -> None:
    """Prints the token to standard error, once for all worker processes. It is not logged, because logs may be kept."""
    if _is_first_process():
        service = _uvicorn_address()
        link = (f"  Dashboard {dashboard_link(text, service)}", "") if is_built() else ()
        lines = ("", *link, "  Development mode. Admin token, valid for this run:", "")
        click.echo("\n".join((*lines, *usage(text, f"{service}{path}"), "")), file=sys.stderr)


def _is_first_process() -> bool:
    return multiprocessing.parent_process() is None or multiprocessing.current_process().name.endswith("-1")


def _uvicorn_address() -> str:
    """Returns the address that uvicorn will listen on, from its options."""
    # uvicorn does not report its address to the application, and listens only after startup.
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--host", default=os.environ.get("UVICORN_HOST", "127.0.0.1"))
    parser.add_argument("--port", default=os.environ.get("UVICORN_PORT", "8000"))
    options, _ = parser.parse_known_args(sys.argv[1:])
    return f"http://{local_host(options.host)}:{options.port}"


def local_host(host: str) -> str:
    """Returns the host to use in a URL on this machine for a server that listens on `host`."""
    return {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
