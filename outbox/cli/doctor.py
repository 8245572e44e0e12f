"""`outbox doctor`, `status` and `alerts`: what is wrong with an installation, what to do, and what was sent about it."""

import asyncio
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, timedelta
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


@click.command(cls=Command)
@click.option("--open", "only_open", is_flag=True, help="Only alerts whose condition holds.")
@click.option("--limit", type=click.IntRange(1, 200), default=20, show_default=True, help="How many, the newest.")
@click.option("--test", "is_test", is_flag=True, help="Send a test message to every webhook of the service instead.")
@json_output
@with_client
async def alerts(client: Client, *, only_open: bool, limit: int, is_test: bool, as_json: bool) -> int:
    """Lists what was sent to webhooks about what is wrong.

    A test message is sent by the service of --url, which knows the webhooks. Exit code 1: one of them did not take it.
    """
    if is_test:
        return _echo_test(await client.post("/alerts/test"), as_json=as_json)
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
        echo("\nThe process that answered has no webhooks for alerts: OUTBOX_ALERT_WEBHOOKS.")
    return 0


def _outcome(delivery: Mapping[str, Any]) -> str:
    if delivery["sent_at"] is not None:
        return "sent"
    return "waiting" if delivery["due_at"] is not None else f"not sent ({delivery['last_error']})"


def _echo_test(answer: Mapping[str, Any], *, as_json: bool) -> int:
    if as_json:
        echo_json(answer)
    else:
        for each in answer["items"]:
            echo(f"{each['target']}: {'delivered' if each['delivered'] else each['error']}")
    return 0 if all(each["delivered"] for each in answer["items"]) else 1


@click.command(cls=Command)
@click.option("--end", "session", metavar="ID", help="End this session instead, in every process.")
@click.option("--revoke", "token", metavar="ID", help="Revoke this token instead, for good, and end its sessions.")
@json_output
@with_client
async def access(client: Client, *, session: str | None, token: str | None, as_json: bool) -> None:
    """Lists the tokens of a service and the sessions that are open, revokes a token, or ends a session.

    The tokens are those of the service of --url; it takes the role admin.
    """
    if session is not None:
        await client.delete(f"/access/sessions/{quote(session, safe='')}")
        echo(f"The session {session} has ended.")
    if token is not None:
        await client.delete(f"/access/tokens/{quote(token, safe='')}")
        echo(f"The token {token} is revoked, and its sessions have ended.")
    if session is not None or token is not None:
        return
    answer = await client.get("/access")
    if as_json:
        echo_json(answer)
        return
    tokens = [(each["id"], each["name"], each["role"], _validity(each)) for each in answer["tokens"]]
    echo_table(("TOKEN", "OF", "ROLE", "VALID UNTIL"), tokens)
    echo()
    if not answer["sessions"]:
        echo("No sessions are open.")
        return
    sessions = [
        (each["id"], each["name"], each["role"], age(each["created_at"]), each["expires_at"]) for each in answer["sessions"]
    ]
    echo_table(("SESSION", "OF", "ROLE", "LOGGED IN", "EXPIRES"), sessions, right=frozenset({"LOGGED IN"}))


def _validity(token: Mapping[str, Any]) -> str:
    if token["revoked_at"] is not None:
        return f"revoked by {one_line(token['revoked_by'])} {age(token['revoked_at'])}"
    return "expired" if token["expired"] else token["last_day"] or "until it is removed"
