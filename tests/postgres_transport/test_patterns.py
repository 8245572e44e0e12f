"""Binding keys as regular expressions of PostgreSQL."""

from collections.abc import Iterator

import psycopg2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg2.extensions import connection as Connection  # noqa: N812  # the driver's class

from outbox.core.topics import matches
from outbox.transports.postgres.tables import pattern_of
from tests.servers.postgres import PostgresServer

_WORDS = st.sampled_from(["", "a", "b", "ab", "*", "#", "ż", "a+", "(", "[a]", "\\", "^$", "a\nb", "{2}", "-", "|", "?"])
_KEYS = st.lists(_WORDS, max_size=6).map(".".join)
_BOUND = st.lists(st.one_of(st.sampled_from(["*", "#"]), _WORDS), min_size=1, max_size=6).map(".".join)


@pytest.fixture(scope="module")
def connection(postgres_server: PostgresServer) -> Iterator[Connection]:
    opened = psycopg2.connect(postgres_server.url)
    opened.autocommit = True
    yield opened
    opened.close()


def matched_by_postgres(connection: Connection, pairs: list[tuple[str, str]]) -> list[bool]:
    """Returns for each binding key and routing key whether they match in PostgreSQL."""
    with connection.cursor() as cursor:
        cursor.execute(
            "select case when pattern is null then binding_key = routing_key else routing_key ~ pattern end "
            "from unnest(%s::text[], %s::text[], %s::text[]) with ordinality as pair (binding_key, pattern, routing_key, n) "
            "order by n",
            ([bound for bound, _ in pairs], [pattern_of(bound) for bound, _ in pairs], [key for _, key in pairs]),
        )
        return [row[0] for row in cursor.fetchall()]


@settings(max_examples=60, deadline=None)
@given(pairs=st.lists(st.tuples(_BOUND, _KEYS), min_size=20, max_size=60))
def test_postgres_matches_what_a_topic_exchange_matches(connection: Connection, pairs: list[tuple[str, str]]) -> None:
    assert matched_by_postgres(connection, pairs) == [matches(bound, key) for bound, key in pairs]


@pytest.mark.parametrize(
    ("binding_key", "routing_key", "expected"),
    [
        ("order.*", "order.placed", True),
        ("order.*", "order", False),
        ("order.*", "order.", True),
        ("order.*", "order.placed.eu", False),
        ("order.#", "order", True),
        ("order.#", "order.placed.eu", True),
        ("#.placed", "placed", True),
        ("#.placed", "order.placed", True),
        ("#.placed", "orderplaced", False),
        ("#", "", True),
        ("*", "", False),
        ("*.*", ".", True),
        ("#.#.a.#.#", "x.a.y", True),
        ("a.*.b+", "a.x.bb", False),
        ("a.*.b+", "a.x.b+", True),
        ("*", "two\nlines", True),
    ],
)
def test_words_are_what_stands_between_dots(connection: Connection, binding_key: str, routing_key: str, expected: bool) -> None:
    assert matched_by_postgres(connection, [(binding_key, routing_key)]) == [expected]


def test_a_plain_key_needs_no_expression() -> None:
    assert pattern_of("order.placed") is None
    assert pattern_of("") is None


def test_a_long_key_with_many_wildcards_is_matched_quickly(connection: Connection) -> None:
    bound = ".".join(["#", "a", "*"] * 20)
    key = ".".join(["a"] * 100)
    with connection.cursor() as cursor:
        cursor.execute("set statement_timeout = '2s'")
    assert matched_by_postgres(connection, [(bound, key)]) == [True]
