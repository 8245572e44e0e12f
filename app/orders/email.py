"""E-mail: notifies the customer that the goods are on their way, which confirms the order."""

import logging

from sqlalchemy.ext.asyncio import AsyncSession

from app.orders.events import Event, OrderEventBody
from app.orders.model import OrderStatus
from app.orders.progress import advance
from outbox import BoundPublisher, consume

logger = logging.getLogger("app.orders")


@consume(Event.STOCK_RESERVED, queue="orders.email")
async def send_confirmation(order: OrderEventBody, session: AsyncSession, publisher: BoundPublisher[AsyncSession]) -> None:
    """Notifies the customer once (here: in the log), and publishes `order.confirmed`."""
    if await advance(session, order, from_=OrderStatus.RESERVED, to=OrderStatus.CONFIRMED):
        logger.info("To %s: %d x %s, order %s, is on its way", order.customer, order.quantity, order.sku, order.order_id)
        await publisher.publish(Event.ORDER_CONFIRMED, order)
