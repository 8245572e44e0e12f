"""Stock: sets the goods of a paid order aside."""

from sqlalchemy.ext.asyncio import AsyncSession

from app.orders.events import Event, OrderEventBody
from app.orders.model import OrderStatus
from app.orders.progress import advanced
from outbox import BoundPublisher, consume


@consume(Event.PAYMENT_CAPTURED, queue="orders.stock")
async def reserve_stock(order: OrderEventBody, session: AsyncSession, publisher: BoundPublisher[AsyncSession]) -> None:
    """Reserves the goods, once, and says so."""
    if await advanced(session, order, from_=OrderStatus.PAID, to=OrderStatus.RESERVED):
        await publisher.publish(Event.STOCK_RESERVED, order)
