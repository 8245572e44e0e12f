"""`outbox token`: a new token for the admin, shown once, and the entry by which the service knows it."""

import json
from importlib.util import find_spec

import click

from outbox.cli.command import Command
from outbox.cli.printing import echo
from outbox.errors import MissingExtraError


@click.command(cls=Command)
@click.option("--name", required=True, help="Whom the audit names: up to 100 letters, digits and .@+-_")
@click.option(
    "--role",
    type=click.Choice(["viewer", "operator", "admin"]),
    default="viewer",
    show_default=True,
    help="What they may do: look; also repair, pause and see what is masked; also delete for good.",
)
@click.option("--json", "as_json", is_flag=True, help="As JSON, for scripts.")
def token(name: str, role: str, *, as_json: bool) -> None:
    """Makes a token for somebody who is to use the admin.

    The token is for them, and kept nowhere: who loses it gets another one. The entry is for OUTBOX_ADMIN_TOKENS of every
    process that serves the admin, separated by commas from those of others. It holds no secret.
    """
    if find_spec("fastapi") is None:
        raise MissingExtraError(purpose="outbox token", extra="fastapi")
    from outbox.admin.principals import Role
    from outbox.admin.security.tokens import new_token

    text, entry = new_token(name, Role(role))
    if as_json:
        echo(json.dumps({"token": text, "entry": str(entry), "name": name, "role": role}))
        return
    echo(f"The token of {name}, shown this once:\n\n    {text}\n")
    echo(f"The service lets it in with this entry, separated by commas from others:\n\n    OUTBOX_ADMIN_TOKENS={entry}")
