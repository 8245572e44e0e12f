"""Redis Streams and Valkey, from 6.2, through redis-py."""

from outbox.errors import MissingExtraError

try:
    import redis as _  # noqa: F401  asked for here, so that its absence is explained once
except ModuleNotFoundError as error:
    raise MissingExtraError(purpose="Redis", extra="redis") from error

from outbox.transports.redis.source import RedisSource
from outbox.transports.redis.transport import RedisTransport

__all__ = ["RedisSource", "RedisTransport"]
