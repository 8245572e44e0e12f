"""`OUTBOX_RUN` and the kind of broker determine the components of a process. Its routes are checked when it is created."""

from typing import Annotated

import pytest
from fastapi import APIRouter, Depends
from pydantic import SecretStr
from sqlalchemy.ext.asyncio import AsyncSession

from app.dependencies import SessionDep, get_session
from app.parts import component_factories, component_names
from app.service import create_service
from app.settings import read_settings
from app.startup import Installation
from outbox import Archiver, Worker
from outbox.errors import ConfigurationError

DATABASE = "postgresql://h/d"


def installation(broker_url: str | None, run: str = "api,archiver") -> Installation:
    settings = read_settings(database_url=DATABASE, broker_url=broker_url, run=run)
    return Installation(settings=settings, database=SecretStr(DATABASE))


def test_an_archiver_runs_with_rabbitmq() -> None:
    here = installation("amqp://h/")
    assert isinstance(component_factories(here)["archiver"](), Archiver)
    assert component_names(here.settings) == "API, archiver"


@pytest.mark.parametrize("broker_url", [None, "postgresql://h/d"])
def test_no_archiver_runs_without_rabbitmq(broker_url: str | None) -> None:
    here = installation(broker_url)
    assert component_factories(here)["archiver"]() is None
    assert component_names(here.settings) == "API"


def test_no_archiver_runs_unless_configured() -> None:
    assert "archiver" not in component_factories(installation("amqp://h/", run="api,relay"))


async def test_a_worker_runs_only_with_consumers() -> None:
    settings = read_settings(database_url=DATABASE)
    here = Installation(settings=settings, database=SecretStr(DATABASE))
    assert component_factories(here)["worker"]() is None
    assert "worker" not in component_names(settings)
    for more in ({"example": True}, {"consumers": "app.orders.consumers:consumers"}):
        settings = read_settings(database_url=DATABASE, **more)
        assert isinstance(
            component_factories(Installation(settings=settings, database=SecretStr(DATABASE)))["worker"](), Worker
        )
        assert "worker" in component_names(settings)


def test_a_configured_worker_without_consumers_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="OUTBOX_CONSUMERS or OUTBOX_EXAMPLE"):
        read_settings(database_url=DATABASE, run="relay,worker")


def test_a_route_that_would_get_two_sessions_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    router = APIRouter()

    @router.post("/users")
    async def create(one: SessionDep, other: Annotated[AsyncSession, Depends(get_session)]) -> None: ...

    monkeypatch.setattr("app.service.orders", router)
    with pytest.raises(ConfigurationError, match=r"^POST /users depends on get_session with .* two sessions"):
        create_service()
