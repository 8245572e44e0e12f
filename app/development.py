"""A token for the admin in development: made at the start, the same for all processes of it, and shown on the terminal."""

import hashlib
import hmac
import multiprocessing
import sys

import click

from outbox.admin import Role
from outbox.admin.security.tokens import TokenEntry, entry_for, token_of

NAME = "development"
"""Whom the audit names."""


def token() -> str:
    """The token of this start. It is as random as the key that every program has for its own processes.

    uvicorn starts its workers as such processes, so that all of them have the same, and none has to be told.
    """
    key = bytes(multiprocessing.current_process().authkey)
    return token_of(hmac.digest(key, b"outbox development token", hashlib.sha256))


def token_entry() -> TokenEntry:
    """Who that is: an administrator."""
    return entry_for(token(), NAME, Role.ADMIN)


def usage(text: str, link: str) -> tuple[str, ...]:
    """What can be typed with it; the commands of `outbox` read the same variable."""
    return (
        f"    export OUTBOX_TOKEN={text}",
        f"    curl -s {link}/outbox/backlog \\",
        '      -H "authorization: Bearer $OUTBOX_TOKEN"',
    )


def show_token(text: str) -> None:
    """Writes it to standard error, once for all processes, and into no log, which may be kept."""
    if _is_the_first():
        lines = ("", "Development: the admin takes the token of this start, until it ends.", "")
        click.echo("\n".join((*lines, *usage(text, "http://127.0.0.1:8000"), "")), file=sys.stderr)


def _is_the_first() -> bool:
    return multiprocessing.parent_process() is None or multiprocessing.current_process().name.endswith("-1")
