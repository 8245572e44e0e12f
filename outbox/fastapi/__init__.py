"""Outbox in any FastAPI application: a publisher for routes, relay and worker next to them.

    sessions = async_sessionmaker(create_async_engine(DATABASE_URL), expire_on_commit=False)
    get_session = transactional(sessions)
    get_publisher = publisher_for(get_session)

    app = FastAPI(lifespan=outbox_lifespan(relay=lambda app: MessageRelay(db_engine_url=…, broker=…)))

    @app.post("/users", status_code=201)
    async def create_user(
        user: User,
        session: Annotated[AsyncSession, Depends(get_session, scope="function")],
        publisher: Annotated[BoundPublisher[AsyncSession], Depends(get_publisher)],
    ) -> None:
        session.add(…)
        await publisher.publish("user.created", user)

Needs the extra `fastapi`.
"""

from importlib.util import find_spec

from outbox.errors import MissingExtraError

if find_spec("fastapi") is None or find_spec("sqlalchemy") is None:
    raise MissingExtraError(purpose="outbox.fastapi", extra="fastapi")

from outbox.fastapi.dependencies import publisher_for, transactional
from outbox.fastapi.lifespan import outbox_lifespan
from outbox.fastapi.routes import check_sessions
from outbox.fastapi.supervision import Supervision, supervised
from outbox.runtime.health import HealthChecks, checking

__all__ = [
    "HealthChecks",
    "Supervision",
    "check_sessions",
    "checking",
    "outbox_lifespan",
    "publisher_for",
    "supervised",
    "transactional",
]
