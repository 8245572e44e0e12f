"""The one way in which handlers move an order on: only from the status that they expect, so that a repetition does nothing."""

from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncSession

from app.orders.events import OrderEventBody
from app.orders.model import Order, OrderStatus


async def advanced(session: AsyncSession, order: OrderEventBody, *, from_: OrderStatus, to: OrderStatus) -> bool:
    """Moves the order from one status to another; False if it is not, or no longer, in the first."""
    due = update(Order).where(Order.id == order.order_id, Order.status == from_)
    return await session.scalar(due.values(status=to).returning(Order.id)) is not None
