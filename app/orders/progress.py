"""Changes the status of an order, only from the expected status, so that a redelivery has no effect."""

from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncSession

from app.orders.events import OrderEventBody
from app.orders.model import Order, OrderStatus


async def advance(session: AsyncSession, order: OrderEventBody, *, from_: OrderStatus, to: OrderStatus) -> bool:
    """Changes the status of the order; returns False if the order does not have the status `from_`."""
    due = update(Order).where(Order.id == order.order_id, Order.status == from_)
    return await session.scalar(due.values(status=to).returning(Order.id)) is not None
