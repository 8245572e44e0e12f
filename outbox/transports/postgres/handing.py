"""The statements of a hand-over: one shape, for rows without ordering keys and for runs of lanes, with history and without."""

from collections.abc import Mapping
from datetime import timedelta
from functools import partial

from outbox.core.byte_limits import MAX_BODY_BYTES
from outbox.engine.holding import LONGEST_WAIT
from outbox.postgres.queries import query, render
from outbox.transports.postgres.tables import TransportTables

LONGEST_HELD_KEY = 1000
"""An unroutable row whose routing key has more bytes is parked: it does not fit into the index of held rows."""
QUEUE_PROBE = timedelta(seconds=5)
"""How long the probe of rows for one queue waits, that is not there: there are few such, and no memory of them."""
_BLOCKED = ", array(select distinct lane from claimed where blocked) as blocked"
"""The lanes in which rows wait, also of those of which everything was superseded."""
_PLACE = """,
    priority, date_part('epoch', send_after) as due"""
_BESIDE = """, exists(select from claimed where dedup_key is not null) as deduplicated,
    {keyed_after} as keyed_after"""


def handover_queries(
    tables: TransportTables, history: str | None = None, *, max_body_bytes: int = MAX_BODY_BYTES
) -> Mapping[str, str]:
    """`hand_over`, `hand_over_fair`, `hand_over_lean`, `hand_over_keyed` and `hand_over_single`; all tell `history`, if given.

    Theirs are nine parameters; three more about lanes where there are keys; where there are none, one of times to begin at, or
    two of rows that the lean one begins behind; and the component that the history names. The lean one leaves rows with dedup
    keys alone, and looks for nothing beside its rows. The single one takes the id of a row instead of a limit.
    """
    names = ("runs", "highest_first", "oldest_first", "keyed_after", "from_due_times", "from_cursor")
    parts = {name: query("handover_parts.sql", name, table=tables.outbox.sql) for name in names}
    runs = parts["runs"]
    keyed = {"claimed": runs, "in_line": "in_line", "order": "rank, place", "more": _BLOCKED, "component": "$13"}
    unkeyed = {"in_line": "overtaking", "order": "send_after, id", "classes": parts["highest_first"]}
    beside = _PLACE + render(_BESIDE, keyed_after=parts["keyed_after"])
    whole = {**unkeyed, "since": parts["from_due_times"], "more": beside, "component": "$11"}
    lean = {**unkeyed, "since": parts["from_cursor"], "more": _PLACE, "component": "$12", "due": "standing"}
    single = {**unkeyed, "selected": "single", "component": "$10"}
    shape = partial(_statement, tables, history, str(max_body_bytes))
    return {
        "hand_over": shape(whole),
        "hand_over_fair": shape({**whole, "classes": parts["oldest_first"]}),
        "hand_over_lean": shape(lean),
        "hand_over_keyed": shape(keyed),
        "hand_over_single": shape(single),
    }


def _statement(tables: TransportTables, history: str | None, max_body_bytes: str, kind: Mapping[str, str]) -> str:
    blocks = tables.queries(
        "handover_parts.sql",
        classes=kind.get("classes", ""),
        since=kind.get("since", ""),
        history=history or "",
        component=kind["component"],
    )
    return tables.queries(
        "handover.sql",
        claimed=kind.get("claimed", blocks[kind.get("selected", "unkeyed")]),
        due=blocks[kind.get("due", "superseding")],
        routed="materialized" if "claimed" in kind else "",
        message=blocks[kind["in_line"]],
        facts=blocks["facts"] if history else "",
        order=kind["order"],
        more=kind.get("more", ""),
        longest_held_key=str(LONGEST_HELD_KEY),
        max_body_bytes=max_body_bytes,
        queue_probe=f"{QUEUE_PROBE.total_seconds():g} seconds",
        longest_wait=f"{LONGEST_WAIT.total_seconds():g} seconds",
    )["hand_over"]
