"""Options that say which dead letters are meant, and where they are."""

import re
from collections.abc import Callable, Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import click

from outbox.cli import options
from outbox.cli.api.places import service
from outbox.dead_letters import DeadLetterFilter, DeadLetterStatus, Source

F = TypeVar("F", bound=Callable[..., Any])

_AGO = re.compile(r"(?P<count>\d{1,6})(?P<unit>[smhd])", re.ASCII)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


class Moment(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions only
    """A date, a date and time, or how long ago: `2030-01-31`, `2030-01-31T12:00Z`, `2h`. Without a zone: local time."""

    name = "when"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """The moment that `value` names."""
        if isinstance(value, datetime):
            return value
        if ago := _AGO.fullmatch(value):
            return datetime.now(UTC) - timedelta(**{_UNITS[ago["unit"]]: int(ago["count"])})
        try:
            return datetime.fromisoformat(value).astimezone(UTC)
        except (ValueError, OverflowError):
            self.fail(
                f"{value!r} is not a time: write 2030-01-31, 2030-01-31T12:00Z, or how long ago, such as 90s, 2h, 3d",
                param,
                ctx,
            )


places = options.together(
    options.database,
    options.broker,
    options.masking,
    service,
)
filtering = options.together(
    click.option("--queue", help="Only of this queue."),
    click.option("--routing-key", help="Only with this routing key."),
    click.option("--exception", "exception_type", metavar="TYPE", help="Only of this exception, such as ValueError."),
    click.option("--group", "group_id", metavar="ID", help="Only of this group of errors, as `outbox dlq groups` names it."),
    click.option("--source", type=click.Choice([source.value for source in Source]), help="Only given up by this one."),
    click.option("--status", type=click.Choice([status.value for status in DeadLetterStatus]), help="Only of this status."),
    click.option("--tracking-id", metavar="ID", help="Only of the chain that this id is in."),
    click.option("--message-id", metavar="ID", help="Only with this message id."),
    click.option(
        "--failed-after", type=Moment(), help="Only that failed then or later: 2030-01-31T12:00Z, or 2h for two hours ago."
    ),
    click.option("--failed-before", type=Moment(), help="Only that failed before then."),
    click.option("--min-failures", type=click.IntRange(min=1), help="Only that failed at least so often."),
    click.option("--search", "q", metavar="WORDS", help='Only with these words in error or body; "…" for phrases, or, -not.'),
)
json_output = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
_NAMES = frozenset(field.name for field in fields(DeadLetterFilter)) - {"ids"}


def filter_of(given: dict[str, Any]) -> DeadLetterFilter:
    """The filter that the options of `filtering` in `given` make."""
    values = {name: value for name, value in given.items() if name in _NAMES and value is not None}
    if "source" in values:
        values["source"] = Source(values["source"])
    if "status" in values:
        values["status"] = DeadLetterStatus(values["status"])
    return DeadLetterFilter(**values)


def selector_of(ids: Sequence[str], given: dict[str, Any], *, everything: bool) -> Sequence[str] | DeadLetterFilter:
    """The ids, or the filter, that were given. Raises a usage error for both, and for neither unless `everything` is meant."""
    filter_ = filter_of(given)
    filtered = filter_ != DeadLetterFilter()
    if ids and (filtered or everything):
        raise click.UsageError("name dead letters by their ids or by a filter, not by both")
    if everything and filtered:
        raise click.UsageError("--all means every one: leave it out, or the filter")
    if not ids and not filtered and not everything:
        raise click.UsageError("say which: ids such as 17 or outbox-17, a filter such as --group or --queue, or --all")
    return tuple(ids) or filter_
