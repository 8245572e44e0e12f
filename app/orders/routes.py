"""Routes to place an order and to follow it."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, HTTPException, status
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import select

from app.dependencies import PublisherDep, SessionDep
from app.orders.events import Event, OrderEventBody
from app.orders.model import LONGEST_TEXT, Order, OrderEvent, OrderStatus

router = APIRouter(prefix="/orders", tags=["orders"])

_ORDER: dict[str, Any] = {"customer": "ada@example.com", "sku": "book", "quantity": 1}
_PLACED: dict[str, Any] = {"id": "5c73762f-7c66-4b48-8146-637331cc91c6", "status": "placed"}
_EVENTS: list[Any] = [{"event": "order.placed", "at": "2026-03-01T12:00:00Z"}]

Text = Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT, pattern=r"^[^\x00]*$")]


class NewOrder(BaseModel):
    """A new order."""

    model_config = ConfigDict(json_schema_extra={"examples": [_ORDER]})

    customer: Text
    sku: Text
    quantity: int = Field(default=1, ge=1, le=1_000)


class PlacedOrder(BaseModel):
    """The id and the status of a new order."""

    model_config = ConfigDict(json_schema_extra={"examples": [_PLACED]})

    id: UUID
    status: OrderStatus


class Missing(BaseModel):
    """The error for an unknown order."""

    detail: str


class NotedEvent(BaseModel):
    """An event of the order."""

    event: str
    at: datetime


class OrderView(PlacedOrder):
    """An order with its events, oldest first."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{**_PLACED, **_ORDER, "placed_at": "2026-03-01T12:00:00Z", "events": _EVENTS}]}
    )

    customer: str
    sku: str
    quantity: int
    placed_at: datetime
    events: list[NotedEvent]


@router.post("", status_code=status.HTTP_201_CREATED)
async def place_order(new: NewOrder, session: SessionDep, publisher: PublisherDep) -> PlacedOrder:
    """Inserts the order and publishes `order.placed` in one transaction: both happen, or neither."""
    order = Order(customer=new.customer, sku=new.sku, quantity=new.quantity)
    session.add(order)
    await session.flush()
    await publisher.publish(Event.ORDER_PLACED, OrderEventBody(order_id=order.id, **new.model_dump()))
    return PlacedOrder(id=order.id, status=OrderStatus.PLACED)


@router.get("/{order_id}", responses={status.HTTP_404_NOT_FOUND: {"model": Missing}})
async def get_order(order_id: UUID, session: SessionDep) -> OrderView:
    """Returns the order and its events."""
    order = await session.get(Order, order_id)
    if order is None:
        raise HTTPException(status.HTTP_404_NOT_FOUND, f"no order {order_id}")
    noted = select(OrderEvent).where(OrderEvent.order_id == order_id).order_by(OrderEvent.at)
    return OrderView(
        id=order.id,
        status=OrderStatus(order.status),
        customer=order.customer,
        sku=order.sku,
        quantity=order.quantity,
        placed_at=order.placed_at,
        events=[NotedEvent(event=note.event, at=note.at) for note in await session.scalars(noted)],
    )
