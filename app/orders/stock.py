"""Stock: reserves the goods of a paid order."""

from sqlalchemy.ext.asyncio import AsyncSession

from app.orders.events import Event, OrderEventBody
from app.orders.model import OrderStatus
from app.orders.progress import advance
from outbox import BoundPublisher, consume


@consume(Event.PAYMENT_CAPTURED, queue="orders.stock")
async def reserve_stock(order: OrderEventBody, session: AsyncSession, publisher: BoundPublisher[AsyncSession]) -> None:
    """Reserves the goods once, and publishes `stock.reserved`."""
    if await advance(session, order, from_=OrderStatus.PAID, to=OrderStatus.RESERVED):
        await publisher.publish(Event.STOCK_RESERVED, order)
