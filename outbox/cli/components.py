"""`outbox components`, `stats`, `pause` and `resume`: running processes, their statistics, and pauses."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import click

from outbox.cli.client import Client, with_client
from outbox.cli.command import CliError, Command
from outbox.cli.options import FUTURE_TIME, json_output
from outbox.cli.output import age, count, counted, duration, echo, echo_heading, echo_json, echo_table, one_line, parse_time

_SCOPES = ("relay", "worker", "queue")
_COUNTS = ("created", "sent", "processed", "failed", "dead", "backlog")
_HEADINGS = ("FROM", *(name.upper() for name in _COUNTS), "OLDEST", "OUTBOX P95", "HANDLER P95")


@click.command(cls=Command)
@click.option("--ended", type=click.IntRange(0, 500), default=10, show_default=True, help="Number of ended components to list.")
@json_output
@with_client
async def components(client: Client, *, ended: int, as_json: bool) -> None:
    """Lists the running relays, workers, archivers and maintenance processes."""
    answer = await client.get("/components", ended=ended)
    if as_json:
        echo_json(answer)
        return
    if answer["items"]:
        headings = ("NAME", "KIND", "STATUS", "SINCE", "HEARTBEAT", "VERSION", "ACTIVITY")
        rows = []
        for component in answer["items"]:
            # A worker with a paused queue still reports itself as running, so pauses are shown in addition to the state.
            paused = [f"{each.get('scope')} {each.get('name') or '(all)'}" for each in component["applied_pauses"]]
            state = str(component["activity"].get("state", "")).replace("_", " ")
            activity = f"{state}; paused: {', '.join(paused)}" if paused else state
            rows.append(
                (
                    component["name"],
                    component["kind"],
                    component["status"],
                    age(component["status_changed_at"]),
                    age(component["last_heartbeat_at"]),
                    component["service_version"] or component["version"],
                    "" if component["status"] == "stopped" else activity,
                )
            )
        echo_table(headings, rows, right=frozenset({"SINCE", "HEARTBEAT"}))
    else:
        echo("No components have reported.")
    if answer["pauses"]:
        echo_heading("Paused")
    for pause_ in answer["pauses"]:
        echo(f"  {_pause_line(pause_)}")


# --- statistics ----------------------------------------------------------------------------------------------------------


@click.command(cls=Command)
@click.option(
    "--from", "from_", default="-1h", show_default=True, metavar="TIME", help="Start: a time with its zone, or -15m, -7d."
)
@click.option("--to", default="now", show_default=True, metavar="TIME", help="End, in the same format.")
@click.option("--step", default="auto", show_default=True, metavar="LENGTH", help="Interval: 60s, 5m, 1h, 1d, or auto.")
@click.option("--group-by", type=click.Choice(["none", "queue", "routing_key"]), default="none", show_default=True)
@json_output
@with_client
async def stats(client: Client, *, as_json: bool, from_: str, to: str, step: str, group_by: str) -> None:
    """Shows throughput, failures and backlog over time, summed over all processes.

    A cell is empty if no data was reported, because no relay or no worker ran. A line marked … is not complete yet.
    """
    answer = await client.get("/stats", **{"from": from_}, to=to, step=step, group_by=group_by)
    if as_json:
        echo_json(answer)
        return
    for series in answer["series"]:
        if series["group"] is not None:
            echo_heading(one_line(series["group"]) or "(none)")
        rows = []
        for index, text in enumerate(answer["starts_at"]):
            counts = [series[name][index] for name in _COUNTS]
            start = datetime.fromisoformat(text).astimezone()
            if any(each is not None for each in counts):
                rows.append(
                    (
                        f"{start:%Y-%m-%d %H:%M}{'' if answer['complete'][index] else ' …'}",
                        *("" if each is None else count(each) for each in counts),
                        duration(series["oldest_age_seconds"][index]),
                        duration(series["latency_seconds"]["p95"][index]),
                        duration(series["handling_seconds"]["p95"][index]),
                    )
                )
        echo_table(_HEADINGS, rows, right=frozenset(_HEADINGS[1:]))
    if answer["step_reason"]:
        echo(f"\nSteps of {duration(answer['step_seconds'])}: {answer['step_reason']}.")


# --- pauses --------------------------------------------------------------------------------------------------------------


@click.command(cls=Command)
@click.argument("scope", type=click.Choice(_SCOPES), required=False)
@click.argument("name", default="")
@click.option("--reason", help="Reason, shown to other operators.")
@click.option("--until", type=FUTURE_TIME, help="When the pause ends: a time with its zone, or a duration from now.")
@json_output
@with_client
async def pause(
    client: Client, scope: str | None, name: str, *, reason: str | None, until: datetime | None, as_json: bool
) -> None:
    """Pauses relays, workers, or a queue; without arguments, lists all pauses.

    NAME is the name of a relay, worker or queue; without it, all relays or all workers are paused. Messages in flight are
    finished.
    """
    answer = await (
        client.get("/pauses")
        if scope is None
        else client.post("/pause", {"scope": scope, "name": name, "reason": reason, "expires_at": until})
    )
    if as_json:
        echo_json(answer)
    elif scope is not None:
        # The name may be wrong, or its component may not have started yet.
        unmet = " No running component is affected." if answer["state"] == "unmet" else ""
        echo(f"Paused {_target(scope, name)}{f' until {_utc(until)}' if until else ''}.{unmet}")
    elif answer["items"]:
        for paused in answer["items"]:
            echo(_pause_line(paused))
    else:
        echo("Nothing is paused.")


@click.command(cls=Command)
@click.argument("scope", type=click.Choice(_SCOPES))
@click.argument("name", default="")
@click.option("--reason", help="Reason, recorded in the audit log.")
@json_output
@with_client
async def resume(client: Client, scope: str, name: str, *, reason: str | None, as_json: bool) -> None:
    """Resumes relays, workers, or a queue.

    Ends only the pause with exactly this scope and name. Other pauses that also cover the component or queue stay.
    """
    answer = await client.post("/resume", {"scope": scope, "name": name, "reason": reason})
    if as_json:
        echo_json(answer)
    if not answer["resumed"]:
        raise CliError(f"no pause of exactly {_target(scope, name)}: `outbox pause` lists all pauses")
    if not as_json:
        echo(f"Resumed {_target(scope, name)}.")
        for other in answer["still_paused_by"]:
            echo(f"Still paused: {_pause_line(other)}")


def _pause_line(paused: Mapping[str, Any]) -> str:
    """Formats one pause: target, times, operator, components that applied it, reason."""
    parts = [_target(paused["scope"], one_line(paused["name"])), f"since {_utc(parse_time(paused['requested_at']))}"]
    parts += [f"until {_utc(parse_time(paused['expires_at']))}"] if paused["expires_at"] else []
    parts += [f"by {one_line(paused['requested_by'])}"] if paused["requested_by"] else []
    match paused["state"]:
        case "applied":
            parts.append(f"applied by {counted(len(paused['components']), 'component')}")
        case "unmet":
            parts.append("no running component is affected")
        case _:
            pending = [one_line(each["name"]) for each in paused["components"] if each["state"] == "pending"]
            parts.append(f"not yet applied by {', '.join(pending)}")
    return ", ".join(parts) + (f": {one_line(paused['reason'])}" if paused["reason"] else "")


def _target(scope: str, name: str) -> str:
    if scope == "queue":
        return f"the queue {name}"
    return f"the {scope} {name}" if name else f"every {scope}"


def _utc(at: datetime | None) -> str:
    return "" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
