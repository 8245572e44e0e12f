"""Statements that claim are written out in full: what they have in common is compared here, so that no copy is forgotten."""

import re
from datetime import timedelta
from importlib import resources

import pytest

from outbox.engine.ordering import OrderingRules
from outbox.engine.routes import LONGEST_HELD_KEY, LONGEST_WAIT
from outbox.postgres.claiming import outbox_queries
from outbox.postgres.ordering import Lanes
from outbox.postgres.queries import TableName, queries
from outbox.transports.postgres.handover import handover_queries
from outbox.transports.postgres.tables import TransportTables

TABLE = TableName("outbox_table")
SQL = resources.files("outbox.postgres").joinpath("sql")
CLAIMS = {**Lanes(TABLE, OrderingRules()).sql, **outbox_queries(TABLE, longest_send=timedelta(seconds=10))}
HANDOVERS = handover_queries(TransportTables(TABLE), '"outbox_history"')
SIZES = re.compile(r"^sized as .*?^measured as .*?^\)", re.DOTALL | re.MULTILINE)
COLUMNS = re.compile(r"^select id, case .*? as deduplicated", re.DOTALL | re.MULTILINE)
PRIORITIES = re.compile(r"^    from .*?cross join lateral", re.DOTALL | re.MULTILINE)
BEGINNING = re.compile(r"^        where sent_at is null.*?order by send_after, id", re.DOTALL | re.MULTILINE)
RUNS = re.compile(r"candidate as .*?^claimed as .*?^\)", re.DOTALL | re.MULTILINE)
ROWS = re.compile(r"^        select id, routing_key, body.*?^        from", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("name", ["claim_fair", "claim_lean", "read", "claim_runs"])
def test_every_claim_measures_rows_and_shows_them_in_the_same_way(name: str) -> None:
    assert _numberless(SIZES, CLAIMS[name]) == _numberless(SIZES, CLAIMS["claim"])
    assert _numberless(COLUMNS, CLAIMS[name]) == _numberless(COLUMNS, CLAIMS["claim"])


def test_claims_that_differ_in_where_they_begin_take_rows_in_the_same_way() -> None:
    assert _numberless(ROWS, CLAIMS["claim_fair"]) == _numberless(ROWS, CLAIMS["claim"])
    assert _numberless(ROWS, CLAIMS["claim_lean"]) == _numberless(ROWS, CLAIMS["claim"])


@pytest.mark.parametrize("name", ["hand_over", "hand_over_fair", "hand_over_lean"])
def test_a_hand_over_begins_where_a_claim_does(name: str) -> None:
    claim = CLAIMS[name.replace("hand_over", "claim")]
    assert _numberless(PRIORITIES, HANDOVERS[name]) == _numberless(PRIORITIES, claim)
    assert _numberless(BEGINNING, HANDOVERS[name]) == _numberless(BEGINNING, claim)


def test_a_hand_over_takes_the_runs_of_lanes_that_a_claim_takes() -> None:
    assert _numberless(RUNS, HANDOVERS["hand_over_keyed"]) == _numberless(RUNS, CLAIMS["claim_runs"])


def test_a_hand_over_holds_what_the_engine_holds() -> None:
    for name, statement in HANDOVERS.items():
        assert f"octet_length(routing_key) > {LONGEST_HELD_KEY} then" in statement, name
        assert f"interval '{LONGEST_WAIT.total_seconds():g} seconds'" in statement, name


def test_ready_means_the_same_wherever_a_lane_is_read() -> None:
    ready = "failed_at is null and (send_after <= now() or last_error is not distinct from 'blocked')"
    for name, mentions in {
        "find_lanes": 2,
        "claim_runs": 3,
        "claim_head_unread": 3,
        "share_heads": 1,
        "park_behind": 1,
        "release_next": 1,
    }.items():
        assert CLAIMS[name].count(ready) == mentions, name


def test_nothing_but_names_and_settings_is_written_into_a_claim() -> None:
    for name, statement in CLAIMS.items():
        assert "{" not in statement, name


def _numberless(part: re.Pattern[str], statement: str) -> str:
    """The part of a statement, whatever the numbers of its parameters."""
    found = part.search(statement)
    assert found is not None, statement
    return re.sub(r"\$\d+", "$", found[0])


@pytest.mark.parametrize("file", sorted(path.name for path in SQL.iterdir()))
def test_no_statement_begins_with_a_comment(file: str) -> None:
    # Spans and statistics are named after the first word of a statement.
    names = dict.fromkeys(re.findall(r"\{([a-z_]+)\}", SQL.joinpath(file).read_text()), "name")
    begins = {name for name, text in queries(file, **names).items() if text.startswith(("--", "/*"))}
    assert begins <= {"body"}, "only the text of a function keeps its comments"


def test_statements_of_several_blocks_begin_with_a_verb() -> None:
    for statement in (*HANDOVERS.values(), *CLAIMS.values()):
        assert statement.split(maxsplit=1)[0] in ("with", "select", "insert", "update", "delete", "begin", "set")
