"""The group of commands, each loaded when it is called, and what becomes of their errors."""

from importlib import import_module
from typing import Any

import click

from outbox import __version__
from outbox.cli.printing import echo, styled
from outbox.environment import check_environment
from outbox.errors import OutboxError
from outbox.urls import redacted

_COMMANDS = {
    "archiver": "outbox.cli.archiver:archiver",
    "backlog": "outbox.cli.backlog:backlog",
    "chain": "outbox.cli.chain:chain",
    "components": "outbox.cli.components:components",
    "demo": "outbox.cli.demo:demo",
    "dlq": "outbox.cli.dlq:dlq",
    "doctor": "outbox.cli.doctor:doctor",
    "maintain": "outbox.cli.maintain:maintain",
    "messages": "outbox.cli.messages:messages",
    "migrate": "outbox.cli.migrate:migrate",
    "operations": "outbox.cli.dlq.operating:operations",
    "pause": "outbox.cli.pausing:pause",
    "relay": "outbox.cli.relay:relay",
    "requeue": "outbox.cli.dlq.repairing:requeue",
    "resume": "outbox.cli.pausing:resume",
    "stats": "outbox.cli.stats:stats",
    "token": "outbox.cli.token:token",
    "worker": "outbox.cli.worker:worker",
}


class Sentence(click.ClickException):
    """An error that a person can do something about: one sentence, no traceback, exit code 1."""

    def show(self, file: Any = None) -> None:
        """Writes the sentence to standard error."""
        echo(styled(f"outbox: {redacted(self.message)}", fg="red"), err=True, file=file)


class Command(click.Command):
    """A command that looks for misspelt settings first, and ends with a sentence when it cannot go on."""

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command."""
        _require_text(ctx)
        try:
            check_environment()
            return super().invoke(ctx)
        except OutboxError as error:
            raise Sentence(str(error)) from error


def _require_text(ctx: click.Context) -> None:
    """Bytes that are no text come from the shell as halves of surrogate pairs, which nothing else takes."""
    for name, value in ctx.params.items():
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, str) and each != each.encode(errors="replace").decode():
                raise click.UsageError(f"{name.replace('_', '-')} is not UTF-8: {each.encode(errors='replace').decode()}")


class _Commands(click.Group):
    """Knows its commands by name, and imports the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in _COMMANDS:
            return None
        module, _, name = _COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="outbox")
def main() -> None:
    """Reliable events: what is committed is delivered."""
