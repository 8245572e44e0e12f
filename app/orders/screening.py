"""Screening: finds orders for what may not be sold. It has a queue of its own next to payment's, so both see every order.

A handler that rejects a message undoes its own writes; what is to be remembered about the order is therefore written here.
"""

from sqlalchemy.ext.asyncio import AsyncSession

from app.orders.events import Event, OrderEventBody
from app.orders.model import OrderStatus
from app.orders.progress import advanced
from outbox import BoundPublisher, consume

FORBIDDEN_SKU = "forbidden"


@consume(Event.ORDER_PLACED, queue="orders.screening")
async def screen_order(order: OrderEventBody, session: AsyncSession, publisher: BoundPublisher[AsyncSession]) -> None:
    """Ends an order for what may not be sold."""
    if order.sku != FORBIDDEN_SKU:
        return
    if await advanced(session, order, from_=OrderStatus.PLACED, to=OrderStatus.REJECTED):
        await publisher.publish(Event.ORDER_REJECTED, order)
