"""The group of commands, each loaded when it is called, and how their errors are printed."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from outbox import __version__
from outbox.cli.output import echo, styled
from outbox.core.urls import redacted
from outbox.errors import OutboxError
from outbox.runtime.environment import check_environment

_SECTIONS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Run": {
        "relay": ("outbox.cli.processes:relay", "Moves committed events from the outbox to the broker."),
        "worker": ("outbox.cli.processes:worker", "Runs the handlers that CONSUMERS names, as package.module:name."),
        "archiver": (
            "outbox.cli.processes:archiver",
            "Moves dead letters from RabbitMQ into the database, where they can be listed, searched and requeued.",
        ),
        "maintain": (
            "outbox.cli.processes:maintain",
            "Prunes the tables, and runs the operations that operators asked for.",
        ),
    },
    "Set up and check": {
        "migrate": ("outbox.cli.migrate:migrate", "Creates the tables of Outbox, or upgrades them in place."),
        "doctor": (
            "outbox.cli.doctor:doctor",
            "Checks the database and the broker against the settings and CONSUMERS (package.module:name).",
        ),
        "access": (
            "outbox.cli.doctor:access",
            "Lists the tokens of a service and the sessions that are open, revokes a token, or ends a session.",
        ),
        "token": ("outbox.cli.migrate:token", "Creates a token for the admin."),
        "demo": ("outbox.cli.demo:demo", "Places orders at a running service and watches them to their end."),
    },
    "Look": {
        "status": (
            "outbox.cli.doctor:status",
            "Shows whether all is well, and if not, what is wrong, since when, and what to do: the verdict of the dashboard.",
        ),
        "backlog": (
            "outbox.cli.backlog:backlog",
            "Shows the backlog of the outbox and the broker: how much waits, since when, and for how much longer.",
        ),
        "queues": (
            "outbox.cli.backlog:queues",
            "Shows each queue: depth, age, rates, failures, handling times, consumers.",
        ),
        "attempts": (
            "outbox.cli.backlog:attempts",
            "Shows the latest, or the slowest, attempts of a queue's handler, with their messages.",
        ),
        "find": (
            "outbox.cli.backlog:find",
            "Finds messages, queues, dead letters and processes by an id, a number, a name, or words of an error.",
        ),
        "messages": (
            "outbox.cli.messages:messages",
            "Lists messages of the outbox, shows why one of them waits, and cancels, reschedules or edits them.",
        ),
        "deliveries": (
            "outbox.cli.messages:deliveries",
            "Lists messages in a queue of the database, shows why one is not handled yet, and retries, moves or ends them.",
        ),
        "alerts": ("outbox.cli.doctor:alerts", "Lists what was sent to webhooks about what is wrong."),
        "export": ("outbox.cli.export:export", "Exports dead letters, messages, the audit or operations, as CSV or NDJSON."),
        "chain": ("outbox.cli.chain:chain", "Shows the chain of messages that a message belongs to, as a tree."),
        "components": (
            "outbox.cli.components:components",
            "Lists relays, workers, archivers and maintenance with their status, activity and pauses.",
        ),
        "stats": (
            "outbox.cli.components:stats",
            "Shows throughput, failures and backlog over time, of all processes together.",
        ),
    },
    "Repair": {
        "dlq": ("outbox.cli.dlq:dlq", "Lists and repairs dead letters."),
        "requeue": ("outbox.cli.dlq.repair:requeue", "Sends dead letters again."),
        "operations": ("outbox.cli.dlq.operations:operations", "Lists operations, or shows one of them."),
        "pause": (
            "outbox.cli.components:pause",
            "Pauses a relay, a worker, or a queue; without arguments, lists what is paused.",
        ),
        "resume": ("outbox.cli.components:resume", "Ends the pause of a relay, a worker, or a queue."),
    },
}
"""The module and the first sentence of each command, so that `outbox --help` imports none of them."""
_COMMANDS = {name: place for section in _SECTIONS.values() for name, (place, _) in section.items()}
_CONNECTION = frozenset(
    {"broker_url", "database_url", "exchange_name", "listen_url", "management_url", "table_name", "timeout", "url"}
)
"""The options that say what a command works with, whichever command it is."""


class CliError(click.ClickException):
    """An error that the user can do something about: one line on standard error, no traceback, exit code 1."""

    def show(self, file: Any = None) -> None:
        """Writes the message to standard error."""
        echo(styled(f"outbox: {redacted(self.message)}", fg="red"), err=True, file=file)


class Command(click.Command):
    """A command that looks for misspelt settings first, and turns an `OutboxError` into a `CliError`."""

    failure: type[CliError] = CliError

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command."""
        # Bytes that are no text come from the shell as halves of surrogate pairs, which nothing else takes.
        for name, value in ctx.params.items():
            for each in value if isinstance(value, tuple) else (value,):
                if isinstance(each, str) and each != (text := each.encode(errors="replace").decode()):
                    raise click.UsageError(f"{name.replace('_', '-')} is not UTF-8: {text}")
        try:
            check_environment()
            return super().invoke(ctx)
        except OutboxError as error:
            raise self.failure(str(error)) from error

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the options, those that say what it works with under a heading of their own."""
        records = [
            (param.name in _CONNECTION, record) for param in self.get_params(ctx) if (record := param.get_help_record(ctx))
        ]
        for heading, of_connection in (("Options", False), ("Connection", True)):
            if chosen := [record for is_of_connection, record in records if is_of_connection is of_connection]:
                with formatter.section(heading):
                    formatter.write_dl(chosen)


class _Commands(click.Group):
    """Knows its commands by name, and imports the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(_COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes what each is for, by section."""
        del ctx
        width = max(map(len, _COMMANDS))
        for heading, commands in _SECTIONS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), sentence) for name, (_, sentence) in commands.items()])

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
