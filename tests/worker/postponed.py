"""Consumers in a module whose annotations are all text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel

from outbox import Consumer, consume

if TYPE_CHECKING:
    from somewhere import Hidden  # type: ignore[import-not-found]
    from sqlalchemy.ext.asyncio import AsyncSession


class Order(BaseModel):
    id: int


@consume("order.*")
async def module_level(order: Order) -> int:
    return order.id


async def hidden(order: Hidden) -> None: ...


async def with_session(order: Order, session: AsyncSession) -> None: ...


def consumers() -> list[tuple[Consumer, list[object]]]:
    """Consumers of a model that only this function knows, each with what it will have seen."""

    class Local(BaseModel):
        id: int

    decorated: list[object] = []
    optional: list[object] = []
    method: list[object] = []

    @consume("order.*")
    async def handle(order: Local) -> None:
        decorated.append(order)

    async def maybe(order: Local | None) -> None:
        optional.append(order)

    class Handler:
        def handle(self, order: Local) -> None:
            method.append(order)

    return [(handle, decorated), (Consumer("order.*", maybe), optional), (Consumer("order.*", Handler().handle), method)]
