"""`outbox chain`: the whole chain that a message belongs to, as a tree, with its times and states."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from outbox.chains import MOST_NODES, Chain, ChainState, Leg, Node
from outbox.chains import chain as look_up
from outbox.chains.model import masked
from outbox.cli import options
from outbox.cli.api.client import Api, ApiError
from outbox.cli.api.opening import over_http
from outbox.cli.api.places import NOWHERE, remote, service
from outbox.cli.chain_json import chain_json, chain_of
from outbox.cli.command import Command, Sentence
from outbox.cli.masks import masking_of
from outbox.cli.printing import Styled, echo, echo_json, one_line, styled
from outbox.errors import ConfigurationError
from outbox.postgres.pool import unavailable_errors

_HEADINGS = ("EVENT", "QUEUE", "PUBLISHED", "OUTBOX", "BROKER", "HANDLER", "TRIES", "STATE", "BY", "ID")
_COLOURS = {
    ChainState.DEAD: "red",
    ChainState.PARKED: "red",
    ChainState.PROCESSED: "green",
    ChainState.RETRYING: "yellow",
    ChainState.HELD: "yellow",
}
_STATE = _HEADINGS.index("STATE")
_GAP = "  "
_MOST_TEXT = 60
_MOST_ERROR = 160


@click.command(cls=Command)
@click.argument("id_", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
@click.option("--max-nodes", type=click.IntRange(1, 100_000), default=MOST_NODES, show_default=True, help="Messages shown.")
@options.database
@options.masking
@service
def chain(id_: str, *, as_json: bool, max_nodes: int, **given: Any) -> None:
    """Shows the chain that a message belongs to: what led to it, what followed, and what became of each.

    ID is that of any message in the chain. OUTBOX, BROKER and HANDLER are the times that a message waited in the outbox, waited
    in the broker, and was handled; RabbitMQ's part of it is known where the history is on.
    """
    found = asyncio.run(_found(given, id_, max_nodes))
    if as_json:
        echo_json(chain_json(found))
    elif found.found:
        for parts in _lines(found):
            echo(*parts)
    if not found.found:
        raise Sentence("; ".join((f"nothing is known of {id_}", *found.unknown)))


async def _found(given: dict[str, Any], id_: str, max_nodes: int) -> Chain:
    """The chain, of a service or of a database."""
    service_ = remote(given)
    if service_ is not None:
        async with over_http(service_) as api:
            return await _asked(api, id_, max_nodes)
    if given["database_url"] is None:
        raise ConfigurationError(NOWHERE)
    found = await _look_up(given["database_url"], id_, max_nodes, given["table_name"])
    return masked(found, masking_of(given))


async def _asked(api: Api, id_: str, max_nodes: int) -> Chain:
    try:
        answer = await api.get("/chains/-", id=id_, max_nodes=min(max_nodes, MOST_NODES))
    except ApiError as error:
        if error.code != "not-found":
            raise
        return Chain(root_id=id_, nodes=(), found=False, unknown=(error.message,))
    return chain_of(answer)


async def _look_up(url: str, id_: str, max_nodes: int, table_name: str) -> Chain:
    with unavailable_errors("looking at the chain"):
        return await look_up(url, id_, max_nodes=max_nodes, table_name=table_name)


# --- the tree ------------------------------------------------------------------------------------------------------------


def _lines(found: Chain) -> Iterator[tuple[str | Styled, ...]]:
    rows = [(_HEADINGS, ""), *_rows(found)]
    widths = [max(len(cells[column]) for cells, _ in rows) for column in range(len(_HEADINGS))]
    for cells, error in rows:
        padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
        colour = _COLOURS.get(ChainState(cells[_STATE])) if cells[_STATE] in tuple(ChainState) else None
        before, after = _GAP.join((*padded[:_STATE], "")), _GAP.join(("", *padded[_STATE + 1 :])).rstrip()
        yield (before, styled(padded[_STATE], fg=colour) if colour else padded[_STATE], after)
        if error:
            yield (" " * (widths[0] + len(_GAP)), styled(error, fg="red"))
    yield from ((remark,) for remark in _remarks(found))


def _rows(found: Chain) -> Iterator[tuple[Sequence[str], str]]:
    """A line for each message and queue; a message that went to several has its own cells in the first."""
    branches = _branches(found.nodes)
    for node, (own, below) in zip(found.nodes, branches, strict=True):
        legs: Sequence[Leg | None] = node.legs or (None,)
        for index, leg in enumerate(legs):
            yield _cells(node, leg, own if index == 0 else below, first=index == 0), _error(node, leg)


def _cells(node: Node, leg: Leg | None, branch: str, *, first: bool) -> Sequence[str]:
    name = _short(node.routing_key or "(not a message that is known)")
    state = node.state if leg is None else leg.state
    if leg is not None and first and node.state not in {leg.state for leg in node.legs}:
        state = node.state  # it is on its way once more
    by = (leg.last.component if leg is not None and leg.last is not None else "") or (node.relay if leg is None else "")
    return (
        branch + (name if first else ""),
        "" if leg is None else _short(leg.queue),
        _time(node.published_at) if first else "",
        _span(node.waited) if first else "",
        "" if leg is None else _span(leg.waited),
        "" if leg is None else _span(leg.handling),
        "" if leg is None or not leg.attempts else str(leg.attempts),
        one_line(str(state)),
        _short(by),
        _short(node.id) if first else "",
    )


def _error(node: Node, leg: Leg | None) -> str:
    if leg is not None and leg.waiting is not None:
        return _one_line(leg.waiting.text)
    last = None if leg is None else leg.last
    if last is not None and last.error is not None and last.error.type:
        return _one_line(f"{last.error.type}: {last.error.message}" if last.error.message else last.error.type)
    return _one_line(node.last_error) if node.last_error and leg is None else ""


def _branches(nodes: Sequence[Node]) -> list[tuple[str, str]]:
    """What stands before each name, and before the further lines of the same node."""
    branches: list[tuple[str, str]] = []
    following: set[int] = set()
    """The depths at which a sibling follows."""
    for node in reversed(nodes):
        following = {depth for depth in following if depth <= node.depth}
        bars = "".join("│  " if depth in following else "   " for depth in range(1, node.depth))
        corner = "" if node.depth == 0 else ("├─ " if node.depth in following else "└─ ")
        further = "" if node.depth == 0 else ("│  " if node.depth in following else "   ")
        branches.append((bars + corner, bars + further))
        following.add(node.depth)
    return branches[::-1]


def _remarks(found: Chain) -> Iterator[str]:
    if found.truncated:
        yield f"There are more than {len(found.nodes)} messages: --max-nodes shows more."
    for sentence in found.unknown:
        yield f"Not known: {sentence}."


def _time(moment: datetime | None) -> str:
    if moment is None:
        return ""
    utc = moment.astimezone(UTC)
    today = utc.date() == datetime.now(UTC).date()
    return f"{utc:%H:%M:%S}.{utc.microsecond // 1000:03}" if today else f"{utc:%Y-%m-%d %H:%M:%S}"


def _span(time: timedelta | None) -> str:
    if time is None:
        return ""
    seconds = time.total_seconds()
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms" if seconds >= 0.01 else f"{seconds * 1000:.1f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{seconds / 3600:.1f} h"


def _short(text: str) -> str:
    return _one_line(text, _MOST_TEXT)


def _one_line(text: str, most: int = _MOST_ERROR) -> str:
    """`text` on one line, which is cut to fit."""
    line = one_line(text)
    return line if len(line) <= most else f"{line[: most - 1]}…"
