"""The statements of a hand-over: one shape, for rows without ordering keys and for runs of lanes, with history and without."""

from collections.abc import Mapping
from datetime import timedelta

from outbox.engine.holding import LONGEST_WAIT
from outbox.postgres.ordering import ordering_parts
from outbox.postgres.queries import queries, query, render
from outbox.transports.postgres.tables import TransportTables

LONGEST_HELD_KEY = 1000
"""An unroutable row whose routing key has more bytes is parked: it does not fit into the index of held rows."""
QUEUE_PROBE = timedelta(seconds=5)
"""How long the probe of rows for one queue waits, that is not there: there are few such, and no memory of them."""
_KEYED = {"lanes": "$9", "policies": "$10", "longest": "$11", "limit": "$2"}
_BLOCKED = ", array(select distinct lane from claimed where blocked) as blocked"
"""The lanes in which rows wait, also of those of which everything was superseded."""
_PLACE = """,
    priority, date_part('epoch', send_after) as due"""
_BESIDE = """, exists(select from claimed where dedup_key is not null) as deduplicated,
    {keyed_after} as keyed_after"""


def handover_queries(tables: TransportTables, history: str | None = None) -> Mapping[str, str]:
    """`hand_over`, `hand_over_fair`, `hand_over_lean` and `hand_over_keyed`; all also tell `history`, if that is a table.

    Theirs are eight parameters; three more about lanes where there are keys; where there are none, one of times to begin at, or
    two of rows that the lean one begins behind; and the component that the history names. The lean one leaves rows with dedup
    keys alone, and looks for nothing beside its rows.
    """
    parts = queries("claiming.sql", table=tables.outbox.sql, floors="$9")
    runs = ordering_parts(tables.outbox, **_KEYED)["runs"]
    keyed = {"claimed": runs, "in_line": "in_line", "order": "rank, place", "more": _BLOCKED, "component": "$12"}
    unkeyed = {"in_line": "overtaking", "order": "send_after, id", "classes": parts["highest_first"]}
    beside = _PLACE + render(_BESIDE, keyed_after=parts["keyed_after"])
    from_floors = query("places.sql", "from_floors", floors="$9")
    from_bookmarks = query("places.sql", "from_bookmarks", dues="$9", ids="$10")
    whole = {**unkeyed, "since": from_floors, "more": beside, "component": "$10"}
    lean = {**unkeyed, "since": from_bookmarks, "more": _PLACE, "component": "$11", "due": "standing"}
    return {
        "hand_over": _statement(tables, history, whole),
        "hand_over_fair": _statement(tables, history, {**whole, "classes": parts["oldest_first"]}),
        "hand_over_lean": _statement(tables, history, lean),
        "hand_over_keyed": _statement(tables, history, keyed),
    }


def _statement(tables: TransportTables, history: str | None, kind: Mapping[str, str]) -> str:
    blocks = tables.queries(
        "handover_parts.sql",
        classes=kind.get("classes", ""),
        since=kind.get("since", ""),
        history=history or "",
        component=kind["component"],
    )
    return tables.queries(
        "handover.sql",
        claimed=kind.get("claimed", blocks["unkeyed"]),
        due=blocks[kind.get("due", "superseding")],
        routed="materialized" if "claimed" in kind else "",
        message=blocks[kind["in_line"]],
        facts=blocks["facts"] if history else "",
        order=kind["order"],
        more=kind.get("more", ""),
        longest_held_key=str(LONGEST_HELD_KEY),
        queue_probe=f"{QUEUE_PROBE.total_seconds():g} seconds",
        longest_wait=f"{LONGEST_WAIT.total_seconds():g} seconds",
    )["hand_over"]
