"""The SQLAlchemy engine that handlers' sessions come from."""

from typing import TYPE_CHECKING
from uuid import uuid4

from outbox.core.urls import postgres_url
from outbox.errors import MissingExtraError
from outbox.postgres.pool import COMMAND_TIMEOUT, CONNECT_TIMEOUT, open_connection

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

APPLICATION_NAME = "outbox worker"


def handler_engine(url: str, *, size: int) -> "AsyncEngine":
    """A SQLAlchemy engine for handlers' sessions, of up to `size` connections, none of them opened yet.

    Like our other connections it works behind a transaction pooler: statements are not cached, and have names of their own.
    Raises `MissingExtraError` without SQLAlchemy.
    """
    try:
        from sqlalchemy.ext.asyncio import create_async_engine
    except ImportError as error:
        raise MissingExtraError(purpose="A consumer's session", extra="sqlalchemy") from error
    return create_async_engine(
        "postgresql+asyncpg://",  # SQLAlchemy reads URLs of several hosts otherwise than PostgreSQL and asyncpg do
        pool_size=size,
        max_overflow=0,
        pool_timeout=CONNECT_TIMEOUT.total_seconds(),
        pool_pre_ping=True,
        connect_args={
            "async_creator_fn": open_connection,
            "dsn": postgres_url(url),
            "timeout": CONNECT_TIMEOUT.total_seconds(),
            "command_timeout": COMMAND_TIMEOUT.total_seconds(),
            "statement_cache_size": 0,
            "prepared_statement_cache_size": 0,
            "prepared_statement_name_func": lambda: f"outbox_{uuid4()}",
            "server_settings": {"application_name": APPLICATION_NAME},
        },
    )
