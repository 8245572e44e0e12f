"""Screening: rejects orders for forbidden goods. It has its own queue, so screening and payment both receive every order.

Payment raises `Reject` for these orders, which rolls back its writes. The status of the order is therefore written here.
"""

from sqlalchemy.ext.asyncio import AsyncSession

from app.orders.events import Event, OrderEventBody
from app.orders.model import OrderStatus
from app.orders.progress import advance
from outbox import BoundPublisher, consume

FORBIDDEN_SKU = "forbidden"


@consume(Event.ORDER_PLACED, queue="orders.screening")
async def screen_order(order: OrderEventBody, session: AsyncSession, publisher: BoundPublisher[AsyncSession]) -> None:
    """Rejects an order for forbidden goods."""
    if order.sku != FORBIDDEN_SKU:
        return
    if await advance(session, order, from_=OrderStatus.PLACED, to=OrderStatus.REJECTED):
        await publisher.publish(Event.ORDER_REJECTED, order)
