"""The tables of the example: orders and their events."""

from datetime import datetime
from enum import StrEnum
from uuid import UUID

from sqlalchemy import CheckConstraint, DateTime, ForeignKey, MetaData, String, func, text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

LONGEST_TEXT = 200


class OrderStatus(StrEnum):
    """The status of an order."""

    PLACED = "placed"
    PAID = "paid"
    RESERVED = "reserved"
    CONFIRMED = "confirmed"
    REJECTED = "rejected"


class Table(DeclarativeBase):
    """Base class of the example's tables."""

    metadata = MetaData()


class Order(Table):
    """An order."""

    __tablename__ = "orders"
    __table_args__ = (
        CheckConstraint("quantity > 0", name="orders_quantity_check"),
        CheckConstraint(f"status in ({', '.join(repr(status.value) for status in OrderStatus)})", name="orders_status_check"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True, server_default=text("gen_random_uuid()"))
    customer: Mapped[str] = mapped_column(String(LONGEST_TEXT))
    sku: Mapped[str] = mapped_column(String(LONGEST_TEXT))
    quantity: Mapped[int]
    status: Mapped[str] = mapped_column(String(20), server_default=OrderStatus.PLACED.value)
    placed_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=func.now())


class OrderEvent(Table):
    """An event of an order, as the journal received it."""

    __tablename__ = "order_events"

    message_id: Mapped[str] = mapped_column(primary_key=True)
    order_id: Mapped[UUID] = mapped_column(ForeignKey(Order.id, ondelete="cascade"), index=True)
    event: Mapped[str]
    at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=func.clock_timestamp())
