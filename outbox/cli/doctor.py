"""`outbox doctor` and `outbox status`: what is wrong with an installation, and what to do about it."""

import asyncio
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, timedelta
from textwrap import fill
from typing import Any

import click

from outbox.cli import options
from outbox.cli.client import ApiError, Client, InProcessClient, with_client
from outbox.cli.command import CliError, Command
from outbox.cli.options import SECONDS, setting
from outbox.cli.output import echo, echo_json, parse_time, styled
from outbox.core.findings import Finding, Severity, warning, well
from outbox.doctor import Installation, Report, examine
from outbox.errors import ConfigurationError, MissingExtraError, OutboxError
from outbox.runtime.consumers import load_consumers

EXIT_CODES = {Severity.OK: 0, Severity.WARNING: 1, Severity.ERROR: 2}
_MARKS = {Severity.OK: ("ok", "green"), Severity.WARNING: ("warning", "yellow"), Severity.ERROR: ("ERROR", "red")}
_WIDTH = 110
_CONNECTION = ("database_url", "table_name", "broker_url", "exchange_name", "management_url")


class _DoctorError(CliError):
    """Why there is no report. Exit code 1 would mean warnings."""

    exit_code = EXIT_CODES[Severity.ERROR]


class _Doctor(Command):
    """The command, whose errors have an exit code of their own."""

    failure = _DoctorError


@click.command(cls=_Doctor)
@click.argument("consumers", envvar="OUTBOX_CONSUMERS", required=False)
@options.database
@options.broker
@setting("listen_url")
@setting("management_url")
@setting("lanes")
@setting("prefetch_count")
@options.health
@click.option("--consumer-timeout", type=SECONDS, default="30m", show_default=True, help="The broker's own consumer_timeout.")
@click.option("--audit", is_flag=True, help="Also verify that no entry of the admin's audit was changed or removed.")
@click.option("--fix", is_flag=True, help="Print only the SQL that fixes what SQL can fix. Nothing is executed.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def doctor(
    consumers: str | None,
    database_url: str | None,
    *,
    consumer_timeout: timedelta,
    fix: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Checks the database and the broker against the settings and CONSUMERS (package.module:name). Changes nothing.

    Exit code 0: no findings; 1: warnings; 2: errors.
    """
    if database_url is None:
        raise ConfigurationError("say which database: --database-url, or OUTBOX_DATABASE_URL")
    health = {name.removeprefix("health_"): given.pop(name) for name in list(given) if name.startswith("health_")}
    installation = Installation(
        database_url=database_url,
        consumer_timeout=consumer_timeout,
        consumers=load_consumers(consumers) if consumers else (),
        **given,
    )
    report = asyncio.run(_examine(installation, health))
    if fix:
        echo("".join(f"{statement};\n" for statement in report.sql) or "-- Nothing to fix with SQL.")
    elif as_json:
        echo(report.as_json())
    else:
        _print(report)
    sys.exit(EXIT_CODES[report.worst])


@click.command(cls=_Doctor)
@options.health
@options.json_output
@with_client
async def status(client: Client, *, as_json: bool) -> int:
    """Shows whether all is well, and if not, what is wrong, since when, and what to do: the verdict of the dashboard.

    Exit code 0: all is well; 1: warnings; 2: errors, or no answer.
    """
    try:
        verdict = await client.get("/health/verdict")
    except ApiError as error:
        raise _DoctorError(str(error)) from error
    if as_json:
        echo_json(verdict)
    else:
        _print(Report(tuple(_of_verdict(verdict))))
    return EXIT_CODES[Severity(verdict["status"])]


async def _examine(installation: Installation, thresholds: Mapping[str, Any]) -> Report:
    """The findings about the setup and, unless the database cannot be asked, those of `GET /health/verdict`."""
    report = await examine(installation)
    if any(finding.check == "database" and finding.severity is Severity.ERROR for finding in report.findings):
        return report
    settings = {name: getattr(installation, name) for name in _CONNECTION}
    try:
        # The admin needs an extra that the other checks do without.
        from outbox.admin import HealthThresholds

        async with InProcessClient(settings, thresholds=HealthThresholds(**thresholds)) as client:
            verdict = await client.get("/health/verdict")
    except MissingExtraError:
        needed = MissingExtraError(purpose="judging the health", extra="cli")
        return Report((*report.findings, well("health", f"not judged: {needed}")))
    except (OutboxError, ApiError) as failure:
        unknown = warning("health", f"it could not be judged: {failure}", "fix the findings above first")
        return Report((*report.findings, unknown))
    return Report((*report.findings, *_of_verdict(verdict)))


def _of_verdict(verdict: Mapping[str, Any]) -> Sequence[Finding]:
    found = []
    for each in verdict["findings"]:
        since = parse_time(each["started_at"])
        when = "" if since is None else f" (since {since.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC)"
        severity = Severity(each["severity"])
        found.append(Finding(check="health", severity=severity, summary=f"{each['summary']}{when}", advice=each["hint"]))
    return found or [well("health", "messages are on their way in time, and nothing needs attention")]


def _print(report: Report) -> None:
    for finding in report.findings:
        mark, colour = _MARKS[finding.severity]
        indent = " " * len(f"{mark:<8} {finding.check:<12} ")
        text = fill(finding.summary, _WIDTH, initial_indent=indent, subsequent_indent=indent).strip()
        echo(styled(f"{mark:<8} ", fg=colour), f"{finding.check:<12} {text}")
        if finding.advice:
            echo(fill(f"→ {finding.advice}", _WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  "))
    counts = Counter(finding.severity for finding in report.findings)
    warnings, errors = counts[Severity.WARNING], counts[Severity.ERROR]
    plural_warnings, plural_errors = "s" * (warnings != 1), "s" * (errors != 1)
    echo(f"\n{counts[Severity.OK]} ok, {warnings} warning{plural_warnings}, {errors} error{plural_errors}.")
    if report.sql:
        echo("`outbox doctor --fix` prints the SQL that fixes what SQL can fix.")
