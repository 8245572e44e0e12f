"""What the browser tests look at: the service with its relay and worker, a second worker that fails until it is fixed."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import httpx
from playwright.async_api import Page, ViewportSize

from outbox import Publisher
from outbox.admin import Role
from outbox.admin.principals import new_token
from tests.app.support import Service, service
from tests.dashboard.shop import QUEUE
from tests.support import eventually
from tests.support.processes import OurProcess, running

ARCHIVED = {"OUTBOX_ARCHIVE_QUEUES": f"{QUEUE},orders.payment", "OUTBOX_ARCHIVE_DISCOVER_EVERY": "0.2"}
WIDE = ViewportSize(width=1280, height=860)
NAMES = {Role.ADMIN: "ada", Role.OPERATOR: "olga", Role.VIEWER: "vera"}


@dataclass(frozen=True, slots=True)
class Stage:
    """A running service, with what a test needs to cause something in it."""

    service: Service
    worker: OurProcess
    database_url: str
    broker_url: str
    tokens: Mapping[Role, str]
    fixed: Path

    @property
    def ui(self) -> str:
        """Where the dashboard begins."""
        return f"{self.service.url}/outbox/ui/"

    def api(self, role: Role = Role.ADMIN) -> httpx.AsyncClient:
        """A client of the admin API."""
        headers = {"authorization": f"Bearer {self.tokens[role]}"}
        return httpx.AsyncClient(base_url=f"{self.service.url}/outbox", headers=headers, timeout=60)

    async def publish(self, *bodies: Any, routing_key: str = "payment.requested", **options: Any) -> None:
        """Publishes each in a transaction of its own."""
        connection = await asyncpg.connect(self.database_url)
        try:
            for body in bodies:
                async with connection.transaction():
                    await Publisher().publish(connection, routing_key, body, **options)
        finally:
            await connection.close()

    async def dead_letters(self, count: int, **filters: str) -> Sequence[Mapping[str, Any]]:
        """Waits until there are so many open ones of that kind."""
        async with self.api() as client:

            async def there() -> Any:
                found = (await client.get("/dlq", params={"limit": 200, **filters})).json()["items"]
                assert len(found) >= count, f"{len(found)} of {count}"
                return found

            found: Sequence[Mapping[str, Any]] = await eventually(there, timeout=60, interval=0.2)
            return found

    def fix(self) -> None:
        """From now on payments succeed."""
        self.fixed.touch()

    def breaks(self) -> None:
        """From now on they fail as their bodies say."""
        self.fixed.unlink(missing_ok=True)


@contextmanager
def staged(folder: Path, database_url: str, broker_url: str, *, settings: Mapping[str, str] | None = None) -> Iterator[Stage]:
    """The service and the second worker, ready. `settings` are added to the service's."""
    made = {role: new_token(NAMES[role], role) for role in Role}
    entries = ",".join(str(entry) for _, entry in made.values())
    where = {"OUTBOX_DATABASE_URL": database_url, "OUTBOX_BROKER_URL": broker_url}
    fixed = folder / "fixed"
    with ExitStack() as stack:
        served = stack.enter_context(
            service(
                folder,
                {
                    **where,
                    "OUTBOX_ADMIN_TOKENS": entries,
                    "OUTBOX_MIGRATE": "true",
                    **({} if broker_url == database_url else ARCHIVED),
                    "OUTBOX_MASK_PATHS": "$.card.number",
                    "OUTBOX_ENVIRONMENT": "staging:amber",
                    **(settings or {}),
                },
            )
        )
        command = ["-m", "outbox.cli", "worker", "tests.dashboard.shop:consumers"]
        command += ["--monitoring-port", "0", "--log-level", "debug"]
        worker = stack.enter_context(running(command, folder, {**where, "SHOP_FIXED": str(fixed)}, name="worker"))
        it = Stage(served, worker, database_url, broker_url, {role: token for role, (token, _) in made.items()}, fixed)
        worker.says(f"consumes queue {QUEUE}, bound", timeout=60)
        yield it


NewStage = Callable[..., AbstractContextManager[Stage]]


Visit = Callable[..., Awaitable[Page]]
