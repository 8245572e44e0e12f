"""`outbox doctor`, `status`, `alerts` and `access`: problems of an installation, alerts about them, tokens and sessions."""

import asyncio
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, timedelta
from itertools import zip_longest
from textwrap import fill
from typing import Any
from urllib.parse import quote

import click

from outbox.cli import options
from outbox.cli.client import ApiError, Client, InProcessClient, with_client
from outbox.cli.command import CliError, Command
from outbox.cli.options import SECONDS, json_output, setting
from outbox.cli.output import age, echo, echo_json, echo_table, one_line, parse_time, styled
from outbox.core.findings import Finding, Severity, warning, well
from outbox.doctor import Installation, Report, examine
from outbox.errors import ConfigurationError, MissingExtraError, OutboxError
from outbox.runtime.consumers import load_consumers

EXIT_CODES = {Severity.OK: 0, Severity.WARNING: 1, Severity.ERROR: 2}
_MARKS = {Severity.OK: ("ok", "green"), Severity.WARNING: ("warning", "yellow"), Severity.ERROR: ("ERROR", "red")}
_WIDTH = 110
_CONNECTION = ("database_url", "table_name", "broker_url", "exchange_name", "management_url")


class _DoctorError(CliError):
    """An error that prevents a report. Exits with 2, because 1 means warnings."""

    exit_code = EXIT_CODES[Severity.ERROR]


class _Doctor(Command):
    """A command whose errors exit with 2."""

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
@click.option(
    "--consumer-timeout",
    type=SECONDS,
    default="30m",
    show_default=True,
    help="The consumer_timeout that is configured at RabbitMQ.",
)
@click.option("--audit", is_flag=True, help="Also verify that no entry of the audit log was changed or removed.")
@click.option("--fix", is_flag=True, help="Print only the SQL that fixes findings. Nothing is executed.")
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
    """Checks that the database and the broker match the settings and the consumers.

    CONSUMERS is package.module:name. Nothing is changed. Exit code 0: no findings; 1: warnings; 2: errors.
    """
    if database_url is None:
        raise ConfigurationError("no database configured: set OUTBOX_DATABASE_URL, or give --database-url")
    health = {name.removeprefix("health_"): given.pop(name) for name in list(given) if name.startswith("health_")}
    installation = Installation(
        database_url=database_url,
        consumer_timeout=consumer_timeout,
        consumers=load_consumers(consumers) if consumers else (),
        **given,
    )
    report = asyncio.run(_examine(installation, health))
    if fix:
        echo("".join(f"{statement};\n" for statement in report.sql) or "-- SQL cannot fix any of the findings.")
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
    """Shows the health of the installation: each problem, since when, and what to do.

    The dashboard shows the same findings. Exit code 0: no problems; 1: warnings; 2: errors, or no response.
    """
    try:
        verdict = await client.get("/health/verdict")
    except ApiError as error:
        raise _DoctorError(str(error)) from error
    if as_json:
        echo_json(verdict)
    else:
        _print(Report(tuple(_verdict_findings(verdict))))
    return EXIT_CODES[Severity(verdict["status"])]


async def _examine(installation: Installation, thresholds: Mapping[str, Any]) -> Report:
    """Returns the findings about the setup and, if the database can be queried, those of `GET /health/verdict`."""
    report = await examine(installation)
    if any(finding.check == "database" and finding.severity is Severity.ERROR for finding in report.findings):
        return report
    settings = {name: getattr(installation, name) for name in _CONNECTION}
    try:
        # Imported here, because only this part of the command needs the extra `cli`.
        from outbox.admin import HealthThresholds

        async with InProcessClient(settings, thresholds=HealthThresholds(**thresholds)) as client:
            verdict = await client.get("/health/verdict")
    except MissingExtraError:
        needed = MissingExtraError(purpose="The health check", extra="cli")
        return Report((*report.findings, well("health", f"not checked: {needed}")))
    except (OutboxError, ApiError) as failure:
        unknown = warning("health", f"could not be checked: {failure}", "fix the findings above first")
        return Report((*report.findings, unknown))
    return Report((*report.findings, *_verdict_findings(verdict)))


def _verdict_findings(verdict: Mapping[str, Any]) -> Sequence[Finding]:
    found = []
    for each in verdict["findings"]:
        since = parse_time(each["started_at"])
        when = "" if since is None else f" (since {since.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC)"
        severity = Severity(each["severity"])
        found.append(Finding(check="health", severity=severity, summary=f"{each['summary']}{when}", advice=each["hint"]))
    return found or [well("health", "messages are sent and handled in time")]


def _print(report: Report) -> None:
    for finding, following in zip_longest(report.findings, report.findings[1:]):
        mark, colour = _MARKS[finding.severity]
        indent = " " * len(f"{mark:<8} {finding.check:<12} ")
        text = fill(finding.summary, _WIDTH, initial_indent=indent, subsequent_indent=indent).strip()
        echo(styled(f"{mark:<8} ", fg=colour), f"{finding.check:<12} {text}")
        # Findings that share their advice, such as several queues without a worker, get it once, after the last one.
        if finding.advice and (following is None or following.advice != finding.advice):
            echo(fill(f"→ {finding.advice}", _WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  "))
    counts = Counter(finding.severity for finding in report.findings)
    warnings, errors = counts[Severity.WARNING], counts[Severity.ERROR]
    plural_warnings, plural_errors = "s" * (warnings != 1), "s" * (errors != 1)
    echo(f"\n{counts[Severity.OK]} ok, {warnings} warning{plural_warnings}, {errors} error{plural_errors}.")
    if report.sql:
        echo("`outbox doctor --fix` prints SQL that fixes some of the findings.")


@click.command(cls=Command)
@click.option("--open", "only_open", is_flag=True, help="Only alerts whose condition holds.")
@click.option("--limit", type=click.IntRange(1, 200), default=20, show_default=True, help="Number of alerts, newest first.")
@click.option("--test", "is_test", is_flag=True, help="Send a test message to every webhook of the service, and list nothing.")
@json_output
@with_client
async def alerts(client: Client, *, only_open: bool, limit: int, is_test: bool, as_json: bool) -> int:
    """Lists the alerts that were sent to webhooks.

    --test needs --url, because only the service knows the webhooks. Exit code 1: a webhook did not accept the test message.
    """
    if is_test:
        answer = await client.post("/alerts/test")
        if as_json:
            echo_json(answer)
        else:
            for each in answer["items"]:
                echo(f"{each['target']}: {'delivered' if each['delivered'] else each['error']}")
        return 0 if all(each["delivered"] for each in answer["items"]) else 1
    answer = await client.get("/alerts", status="open" if only_open else None, limit=limit)
    if as_json:
        echo_json(answer)
        return 0
    rows = [
        (
            each["severity"],
            each["code"],
            age(each["fired_at"]),
            age(each["resolved_at"]) or "open",
            ", ".join(sorted({_outcome(delivery) for delivery in each["deliveries"]})),
            one_line(each["summary"]),
        )
        for each in answer["items"]
    ]
    if rows:
        echo_table(("SEVERITY", "CODE", "SENT", "RESOLVED", "WEBHOOKS", "SUMMARY"), rows, right=frozenset({"SENT", "RESOLVED"}))
    else:
        echo("No alerts are open." if only_open else "No alerts were sent.")
    if answer["settings"] is None:
        echo("\nNo webhooks are configured in this process: set OUTBOX_ALERT_WEBHOOKS.")
    return 0


def _outcome(delivery: Mapping[str, Any]) -> str:
    if delivery["sent_at"] is not None:
        return "sent"
    return "waiting" if delivery["due_at"] is not None else f"not sent ({delivery['last_error']})"


@click.command(cls=Command)
@click.option("--end", "session", metavar="ID", help="End this session, in every process.")
@click.option("--revoke", "token", metavar="ID", help="Revoke this token permanently and end its sessions.")
@json_output
@with_client
async def access(client: Client, *, session: str | None, token: str | None, as_json: bool) -> None:
    """Lists the tokens and open sessions of a service, revokes a token, or ends a session.

    Needs --url and a token with the role admin.
    """
    if session is not None:
        await client.delete(f"/access/sessions/{quote(session, safe='')}")
        echo(f"Session {session} ended.")
    if token is not None:
        await client.delete(f"/access/tokens/{quote(token, safe='')}")
        echo(f"Token {token} revoked, and its sessions ended.")
    if session is not None or token is not None:
        return
    answer = await client.get("/access")
    if as_json:
        echo_json(answer)
        return
    tokens = [(each["id"], each["name"], each["role"], _validity(each)) for each in answer["tokens"]]
    echo_table(("TOKEN", "NAME", "ROLE", "VALID UNTIL"), tokens)
    echo()
    if not answer["sessions"]:
        echo("No sessions are open.")
        return
    sessions = [
        (each["id"], each["name"], each["role"], age(each["created_at"]), each["expires_at"]) for each in answer["sessions"]
    ]
    echo_table(("SESSION", "NAME", "ROLE", "LOGGED IN", "EXPIRES"), sessions, right=frozenset({"LOGGED IN"}))


def _validity(token: Mapping[str, Any]) -> str:
    if token["revoked_at"] is not None:
        return f"revoked by {one_line(token['revoked_by'])} {age(token['revoked_at'])}"
    return "expired" if token["expired"] else token["last_day"] or "no expiry"
