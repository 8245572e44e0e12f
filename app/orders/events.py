"""The events of the example: routing keys and body."""

from enum import StrEnum
from uuid import UUID

from pydantic import BaseModel


class Event(StrEnum):
    """Routing keys."""

    ORDER_PLACED = "order.placed"
    PAYMENT_CAPTURED = "payment.captured"
    STOCK_RESERVED = "stock.reserved"
    ORDER_CONFIRMED = "order.confirmed"
    ORDER_REJECTED = "order.rejected"


class OrderEventBody(BaseModel):
    """The body of every event: the order and what was ordered."""

    order_id: UUID
    customer: str
    sku: str
    quantity: int
