"""The events of the example: their routing keys, and what each says."""

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
    """What every event of the example says: which order it is about, and what was ordered."""

    order_id: UUID
    customer: str
    sku: str
    quantity: int
