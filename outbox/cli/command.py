"""The group of commands, each imported when it is called, and how errors are printed."""

import errno
import gc
import logging
from collections.abc import Mapping
from difflib import get_close_matches
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
        "worker": ("outbox.cli.processes:worker", "Runs message handlers; CONSUMERS is package.module:name."),
        "archiver": (
            "outbox.cli.processes:archiver",
            "Moves dead letters from RabbitMQ into the database, where they can be listed, searched and requeued.",
        ),
        "maintain": (
            "outbox.cli.processes:maintain",
            "Deletes expired rows, and runs the bulk operations that operators start.",
        ),
    },
    "Set up and check": {
        "migrate": ("outbox.cli.migrate:migrate", "Creates the tables of Outbox, or upgrades them in place."),
        "doctor": (
            "outbox.cli.doctor:doctor",
            "Checks that the database and the broker match the settings and the consumers.",
        ),
        "access": (
            "outbox.cli.doctor:access",
            "Lists the tokens and open sessions of a service, revokes a token, or ends a session.",
        ),
        "token": ("outbox.cli.migrate:token", "Creates an admin token."),
        "asyncapi": (
            "outbox.cli.asyncapi:asyncapi",
            "Prints what a service publishes and consumes as an AsyncAPI document, and finds breaking changes.",
        ),
        "demo": (
            "outbox.cli.demo:demo",
            "Places orders at a running service and follows each until it is confirmed or rejected.",
        ),
    },
    "Inspect": {
        "status": (
            "outbox.cli.doctor:status",
            "Shows the health of the installation: each problem, since when, and what to do.",
        ),
        "backlog": (
            "outbox.cli.backlog:backlog",
            "Shows the backlog of the outbox and the broker: size, age, and estimated time to drain.",
        ),
        "queues": (
            "outbox.cli.backlog:queues",
            "Shows depth, age, rates, failures, handling times and consumers of each queue.",
        ),
        "attempts": (
            "outbox.cli.backlog:attempts",
            "Shows the latest or the slowest attempts to handle a queue's messages.",
        ),
        "find": (
            "outbox.cli.backlog:find",
            "Finds messages, queues, dead letters and components by id, name, or words of an error.",
        ),
        "messages": (
            "outbox.cli.messages:messages",
            "Lists messages of the outbox, shows why a message waits, and cancels, reschedules or edits it.",
        ),
        "deliveries": (
            "outbox.cli.messages:deliveries",
            "Lists messages in a PostgreSQL queue, shows why a message waits, and retries, moves or dead-letters it.",
        ),
        "alerts": ("outbox.cli.doctor:alerts", "Lists the alerts that were sent to webhooks."),
        "export": ("outbox.cli.export:export", "Exports dead letters, messages, operations or the audit log as CSV or NDJSON."),
        "chain": ("outbox.cli.chain:chain", "Shows the chain of messages that a message belongs to, as a tree."),
        "components": (
            "outbox.cli.components:components",
            "Lists the running relays, workers, archivers and maintenance processes.",
        ),
        "stats": (
            "outbox.cli.components:stats",
            "Shows throughput, failures and backlog over time, summed over all processes.",
        ),
    },
    "Repair": {
        "dlq": ("outbox.cli.dlq:dlq", "Lists and repairs dead letters."),
        "requeue": ("outbox.cli.dlq.repair:requeue", "Requeues dead letters."),
        "operations": ("outbox.cli.dlq.operations:operations", "Lists bulk operations, or shows one."),
        "pause": (
            "outbox.cli.components:pause",
            "Pauses relays, workers, or a queue; without arguments, lists all pauses.",
        ),
        "resume": ("outbox.cli.components:resume", "Resumes relays, workers, or a queue."),
    },
}
"""Import path and first help sentence of each command, repeated here so that `outbox --help` imports no command."""
_COMMANDS = {name: target for section in _SECTIONS.values() for name, (target, _) in section.items()}
_CONNECTION = frozenset(
    {
        "broker_url",
        "database",
        "database_url",
        "databases_file",
        "databases_refresh",
        "databases_longest_pause",
        "exchange_name",
    }
    | {"listen_url", "management_url", "table_name", "timeout", "url"}
)
"""Options that every command lists under the heading "Connection"."""


class CliError(click.ClickException):
    """An error that the user can fix: one line on standard error, no traceback, exit code 1."""

    def show(self, file: Any = None) -> None:
        """Writes the message to standard error."""
        echo(styled(f"outbox: {redacted(self.message)}", fg="red"), err=True, file=file)


class Command(click.Command):
    """A command that checks the environment for misspelt settings first, and turns an `OutboxError` into a `CliError`."""

    failure: type[CliError] = CliError

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command."""
        if not gc.isenabled():  # the process is this command's own
            gc.freeze()
            gc.enable()
        if not logging.getLogger().handlers:
            # aiormq logs every failed connection attempt as an error, which commands report themselves.
            logging.getLogger("aiormq").setLevel(logging.CRITICAL)
        # Python decodes invalid UTF-8 arguments to lone surrogates, which PostgreSQL and HTTP libraries cannot encode.
        for name, value in ctx.params.items():
            for each in value if isinstance(value, tuple) else (value,):
                if isinstance(each, str) and each != (text := each.encode(errors="replace").decode()):
                    raise click.UsageError(f"{name.replace('_', '-')} is not UTF-8: {text}")
        try:
            check_environment()
            return super().invoke(ctx)
        except OutboxError as error:
            raise self.failure(str(error)) from error
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise self.failure(f"cannot write the output: {error.strerror}") from error

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the options; those of the connection get their own heading."""
        records = [
            (param.name in _CONNECTION, record) for param in self.get_params(ctx) if (record := param.get_help_record(ctx))
        ]
        for heading, of_connection in (("Options", False), ("Connection", True)):
            if chosen := [record for is_of_connection, record in records if is_of_connection is of_connection]:
                with formatter.section(heading):
                    formatter.write_dl(chosen)


class DefaultGroup(click.Group):
    """A group that runs one of its commands if none is named: `show`, unless a subclass says otherwise."""

    def default_command(self, first: str) -> str:
        """Returns the command for a first argument that is none; "" without arguments."""
        del first
        return "show"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Inserts the default command unless the first argument is a command or a help option."""
        first = args[0] if args else ""
        if first not in self.commands and first not in ctx.help_option_names:
            args = [self.default_command(first), *args]
        return super().parse_args(ctx, args)


class _Commands(click.Group):
    """A group that imports only the command that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(_COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the first sentence of each command, by section."""
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

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds the command of the first argument. For one that does not exist, the error names a similar one."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = get_close_matches(args[0], _COMMANDS, n=1)
            if near and not args[0].startswith("-"):
                raise click.UsageError(f"No such command {args[0]!r}. Did you mean {near[0]!r}?", ctx) from error
            raise


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="outbox")
def main() -> None:
    """Transactional outbox for PostgreSQL and RabbitMQ: events commit with your data and are then delivered."""
