"""URLs: the server that they name, without passwords."""

import re
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbox.core.urls import ServerKind, amqp_url, postgres_url, redacted, server_kind
from outbox.errors import UrlError
from outbox.transports.rabbitmq.connection import OwnedConnection

POSTGRES_SPELLINGS = [
    "postgresql://",
    "postgres://",
    "postgresql+asyncpg://",
    "postgresql+psycopg://",
    "postgresql+psycopg2://",
    "POSTGRESQL://",
]


@pytest.mark.parametrize("spelling", POSTGRES_SPELLINGS)
def test_every_spelling_of_a_postgres_url_becomes_the_plain_one(spelling: str) -> None:
    assert server_kind(f"{spelling}u:p@h/db") is ServerKind.POSTGRES
    assert postgres_url(f"{spelling}u:p%40x@h:5432/db?sslmode=require") == "postgresql://u:p%40x@h:5432/db?sslmode=require"


@pytest.mark.parametrize(
    "rest",
    [
        "",
        "/db",
        "h",
        "u@h:/db",
        "u:p@[::1]:2,h:1,[fe80::1%25eth0],10.0.0.1/db?target_session_attrs=any",
        "u:p@%2Frun%2Fpostgresql:5433/db",
        "/db?host=/run/postgresql&port=5433&user=a@b",
        "/db?host=a,b&port=1,2&options=",
    ],
)
def test_every_form_of_a_host_is_accepted(rest: str) -> None:
    assert postgres_url(f"postgresql://{rest}") == f"postgresql://{rest}"


@pytest.mark.parametrize("url", ["amqp://u:p@h/vhost", "amqps://h", "AMQP://h:5672/%2F?heartbeat=5"])
def test_an_amqp_url_stays_as_it_is(url: str) -> None:
    assert server_kind(url) is ServerKind.AMQP
    assert amqp_url(url) == url


def connection_to(url: str) -> OwnedConnection:
    return OwnedConnection(url, purpose="tests", connect_timeout=timedelta(seconds=1))


@pytest.mark.parametrize(
    ("check", "url", "complaint"),
    [
        (postgres_url, "amqp://u:geheim@h", "db_engine_url must be a postgresql:// URL, not amqp://"),
        (amqp_url, "postgresql://u:geheim@h", "rmq_connection_url must be an amqp:// or amqps:// URL, not postgresql://"),
        (postgres_url, "mysql://u:geheim@h", "db_engine_url must be a postgresql:// URL, not mysql://"),
        (postgres_url, "localhost:5432/geheim", "it has no scheme such as postgresql://$"),
        (server_kind, "localhost:5432/geheim", "no scheme"),
        (server_kind, "geheim", "no scheme"),
        (server_kind, "", "no scheme"),
        (server_kind, "://geheim", "no scheme"),
        (server_kind, "postgresql://u:geheim@[::1/db", "cannot be read"),
        (server_kind, "postgresql://u:geheim@h\u2100x/db", "cannot be read"),
        (server_kind, "kafka://u:geheim@h,[::1", r"cannot be read\. Write a host in brackets first, with its port"),
        (postgres_url, "postgresql://u:geh/eim@h:5432/db", "a host, a port or options that cannot be read"),
        (postgres_url, "postgresql://u:geh#eim@h:5432/db", "a host, a port or options that cannot be read"),
        (postgres_url, "postgresql://u:geh?eim@h:5432/db", "a host, a port or options that cannot be read"),
        (postgres_url, "postgresql://u:g@eh:eim@h:5432/db", "a host, a port or options that cannot be read"),
        (postgres_url, "postgresql://u:geheim@h:geheim/db", "a host, a port or options that cannot be read"),
        (postgres_url, "postgresql://u:geheim@h:65536/db", "a host, a port or options that cannot be read"),
        (postgres_url, "postgresql://u:geheim@h,/db", "a host, a port or options that cannot be read"),
        (postgres_url, "postgresql:///db?port=geheim", "a host, a port or options that cannot be read"),
        (postgres_url, "postgresql://u:geheim@h/db?geheim", "a host, a port or options that cannot be read"),
        (server_kind, None, "as text, not NoneType"),
        (server_kind, b"postgresql://u:geheim@h", "as text, not bytes"),
        (connection_to, "amqp://u:geheim@/vhost", "no host and port that can be read"),
        (connection_to, "amqp://u:geheim@xn--a/vhost", "no host and port that can be read"),
    ],
)
def test_an_unknown_url_is_refused_without_its_password(check: object, url: object, complaint: str) -> None:
    with pytest.raises(UrlError, match=complaint) as refusal:
        check(url)  # type: ignore[operator]
    assert not re.search("geh|eim", str(refusal.value))
    assert refusal.value.__cause__ is None
    assert refusal.value.__suppress_context__ or refusal.value.__context__ is None


def test_a_refusal_names_the_argument() -> None:
    with pytest.raises(UrlError, match="broker has the scheme"):
        server_kind("mqtt://h", argument="broker")


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("amqp://ada:geheim@rabbit:5672/orders", "amqp://ada:***@rabbit:5672/orders"),
        ("postgresql+asyncpg://ada:geheim@db/app?sslmode=require", "postgresql+asyncpg://ada:***@db/app?sslmode=require"),
        ("amqp://ada:ge@he@im@rabbit/", "amqp://ada:***@rabbit/"),
        ("amqp://ada:ge/he/im@rabbit/", "amqp://ada:***@rabbit/"),
        ("amqp://ada:ge:he:im@rabbit/", "amqp://ada:***@rabbit/"),
        ("amqp://ada:ge%40he%2Fim@rabbit/", "amqp://ada:***@rabbit/"),
        ("amqp://ada:ge?he#im@rabbit/", "amqp://ada:***@rabbit/"),
        ("amqp://ada:12345@rabbit/", "amqp://ada:***@rabbit/"),
        ("amqp://ada:12345/67@rabbit/", "amqp://ada:***@rabbit/"),
        ("amqp://ada:ge heim@rabbit/", "amqp://ada:***@rabbit/"),
        ("amqp://:geheim@rabbit/", "amqp://:***@rabbit/"),
        ("amqp://a/da:geheim@rabbit/", "amqp://a/da:***@rabbit/"),
        ("postgresql://ada:geheim@[::1]:5432/db", "postgresql://ada:***@[::1]:5432/db"),
        ("AMQP://ada:geheim@rabbit", "AMQP://ada:***@rabbit"),
        ("cannot reach amqp://a:geheim@b, nor amqp://c:geheim@d.", "cannot reach amqp://a:***@b, nor amqp://c:***@d."),
        ("lost amqp://a:geheim@b; ask bob@example.com", "lost amqp://a:***@b; ask bob@example.com"),
        ("{'url': 'amqp://a:geheim@b', 'n': 1}", "{'url': 'amqp://a:***@b', 'n': 1}"),
        ("postgresql://db/app?user=ada&password=geheim&x=1", "postgresql://db/app?user=ada&password=***&x=1"),
        ("postgresql://db/app?sslpassword=geheim", "postgresql://db/app?sslpassword=***"),
        ("host=db user=ada password=geheim dbname=app", "host=db user=ada password=*** dbname=app"),
        ("host=db password='ge heim \\' x' dbname=app", "host=db password=*** dbname=app"),
        ("{'password': 'geheim', 'user': 'ada'}", "{'password': ***, 'user': 'ada'}"),
        ("host=db password='ge heim", "host=db password=***"),
        ("----------------------------------------amqp://a:geheim@b", "----------------------------------------amqp://a:***@b"),
        ("PGPASSWORD=geheim psql", "PGPASSWORD=*** psql"),
    ],
)
def test_passwords_are_left_out(text: str, safe: str) -> None:
    assert redacted(text) == safe


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no URL at all, but a colon: and an @ sign",
        "http://localhost:15672/api answered 404 to bob@example.com",
        "amqp://rabbit:5672/vhost",
        "amqp://guest@rabbit:5672/vhost",
        "amqp://guest:@rabbit:5672/vhost",
        "postgresql:///app?host=/run/postgresql",
        'password authentication failed for user "ada"',
    ],
)
def test_what_has_no_password_stays_as_it_is(text: str) -> None:
    assert redacted(text) == text


words = st.text(alphabet=st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Z")), min_size=1, max_size=20)


@given(user=st.text(alphabet="abc.-_%@/", max_size=8), password=words, before=st.text(max_size=10), after=st.text(max_size=20))
def test_no_password_without_spaces_survives_wherever_the_url_stands(user: str, password: str, before: str, after: str) -> None:
    """The markers at its ends make any part of it that is left recognisable."""
    password = f"BEGIN{password}END"
    safe = redacted(f"{before} amqp://{user}:{password}@rabbit/vhost {after}")
    assert "BEGIN" not in safe
    assert "END" not in safe


@pytest.mark.parametrize("piece", ["x", "x ", "://", "a://b:", "a://b:c@", "a://b:1/", "password='", "@", ":", "\n"])
def test_a_long_text_takes_no_longer_than_its_length(piece: str) -> None:
    redacted(piece * 50_000)  # with the square of its length it would take longer than a test may
