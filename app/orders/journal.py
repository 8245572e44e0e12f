"""The journal: records every event of the example. Events of other programs stay unroutable."""

from typing import Any

from pydantic import ValidationError
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from app.orders.events import OrderEventBody
from app.orders.model import Order, OrderEvent
from outbox import Consumer


async def record_event(body: Any, routing_key: str, tracking_ids: tuple[str, ...], session: AsyncSession) -> None:
    """Records the event under its message id, so that a redelivery has no effect."""
    try:
        order = OrderEventBody.model_validate(body)
    except ValidationError:
        return  # another program's event on the same exchange
    if await session.get(Order, order.order_id) is None:
        return  # an order of another installation
    note = insert(OrderEvent).values(message_id=tracking_ids[-1], order_id=order.order_id, event=routing_key)
    await session.execute(note.on_conflict_do_nothing())


journal = tuple(Consumer(f"{kind}.*", record_event, f"orders.journal.{kind}") for kind in ("order", "payment", "stock"))
