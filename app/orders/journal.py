"""The journal: notes every event that concerns an order. Its binding key `#` means all events, whoever publishes them."""

from typing import Any

from pydantic import ValidationError
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from app.orders.events import OrderEventBody
from app.orders.model import Order, OrderEvent
from outbox import consume


@consume("#", queue="orders.journal")
async def note_event(body: Any, routing_key: str, tracking_ids: tuple[str, ...], session: AsyncSession) -> None:
    """Notes the event under its message id, so that a repetition is the same note."""
    try:
        concerned = OrderEventBody.model_validate(body)
    except ValidationError:
        return  # somebody else's event on the same exchange
    if await session.get(Order, concerned.order_id) is None:
        return  # an order of another installation
    note = insert(OrderEvent).values(message_id=tracking_ids[-1], order_id=concerned.order_id, event=routing_key)
    await session.execute(note.on_conflict_do_nothing())
