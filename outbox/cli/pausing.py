"""`outbox pause` and `outbox resume`: a relay, a worker or a queue takes nothing new for a while."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from outbox.cli.api.client import Api
from outbox.cli.api.opening import ask
from outbox.cli.api.places import places
from outbox.cli.api.telling import echo_answer, json_output, moment
from outbox.cli.command import Command, Sentence
from outbox.cli.dlq.tables import counted
from outbox.cli.options import RETENTION
from outbox.cli.printing import echo, one_line

_SCOPES = ("relay", "worker", "queue")


class Until(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions only
    """A moment, as `2030-01-31T12:00:00Z`, or a time from now."""

    name = "when"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime | timedelta:
        """The moment, or the time from now, that `value` names."""
        if isinstance(value, datetime | timedelta):
            return value
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            return RETENTION.convert(value, param, ctx)
        if found.tzinfo is None:
            self.fail(f"{value!r} names no time zone: write {value}Z for UTC", param, ctx)
        return found


@click.command(cls=Command)
@click.argument("scope", type=click.Choice(_SCOPES), required=False)
@click.argument("name", default="")
@click.option("--reason", help="Why, for those who find it paused.")
@click.option("--until", type=Until(), help="When it ends by itself: a moment with its time zone, or a time from now.")
@json_output
@places
def pause(
    scope: str | None, name: str, *, reason: str | None, until: datetime | timedelta | None, as_json: bool, **given: Any
) -> None:
    """Lets a relay, a worker or a queue take nothing new; without arguments, lists what is paused.

    NAME is that of a relay or worker, all of them if it is left out, or that of a queue. What is in hand is finished.
    """
    if scope is None:
        _list(given, as_json=as_json)
        return
    end = datetime.now(UTC) + until if isinstance(until, timedelta) else until

    async def hold(api: Api) -> Any:
        return await api.post("/pause", {"scope": scope, "name": name, "reason": reason, "until": end})

    answer = ask(given, hold)
    if as_json:
        echo_answer(answer)
    else:
        echo(f"{_words(scope, name)} will take nothing new{f' until {_time(end)}' if end else ''}.")


@click.command(cls=Command)
@click.argument("scope", type=click.Choice(_SCOPES))
@click.argument("name", default="")
@click.option("--reason", help="Why, for the record.")
@json_output
@places
def resume(scope: str, name: str, *, reason: str | None, as_json: bool, **given: Any) -> None:
    """Ends the pause of a relay, a worker or a queue. Another pause that covers it as well goes on."""

    async def go_on(api: Api) -> Any:
        return await api.post("/resume", {"scope": scope, "name": name, "reason": reason})

    answer = ask(given, go_on)
    if as_json:
        echo_answer(answer)
    if not answer["resumed"]:
        raise Sentence(f"{_words(scope, name)} was not paused in these words: `outbox pause` lists what is")
    if not as_json:
        echo(f"{_words(scope, name)} will go on.")
        for other in answer["still_paused_by"]:
            echo(f"Still paused: {told(other)}")


def _list(given: dict[str, Any], *, as_json: bool) -> None:
    async def look(api: Api) -> Any:
        return await api.get("/pauses")

    answer = ask(given, look)
    if as_json:
        echo_answer(answer)
        return
    for paused in answer["items"]:
        echo(told(paused))
    if not answer["items"]:
        echo("Nothing is paused.")


def told(paused: Mapping[str, Any]) -> str:
    """A pause in a line: what, since when, until when, by whom, how far, and why."""
    parts = [_words(paused["scope"], one_line(paused["name"])), f"since {_time(moment(paused['requested_at']))}"]
    parts += [f"until {_time(moment(paused['until']))}"] if paused["until"] else []
    parts += [f"by {one_line(paused['requested_by'])}"] if paused["requested_by"] else []
    parts += [_how_far(paused)]
    return ", ".join(parts) + (f": {one_line(paused['reason'])}" if paused["reason"] else "")


def _how_far(paused: Mapping[str, Any]) -> str:
    waiting = [component["name"] for component in paused["components"] if component["state"] == "pending"]
    match paused["state"]:
        case "applied":
            return f"honoured by {counted(len(paused['components']), 'component')}"
        case "unmet":
            return "which concerns nobody who is running"
    return f"not yet honoured by {', '.join(map(one_line, waiting))}"


def _words(scope: str, name: str) -> str:
    if scope == "queue":
        return f"the queue {name}"
    return f"the {scope} {name}" if name else f"every {scope}"


def _time(at: datetime | None) -> str:
    return "" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
