"""Payment: captures the payment of a placed order. SKU `flaky` fails once and is retried; SKU `forbidden` is rejected."""

from sqlalchemy.ext.asyncio import AsyncSession

from app.orders.events import Event, OrderEventBody
from app.orders.model import OrderStatus
from app.orders.progress import advance
from app.orders.screening import FORBIDDEN_SKU
from outbox import BoundPublisher, Reject, consume

FLAKY_SKU = "flaky"


class PaymentProviderError(Exception):
    """The payment provider did not respond; a retry may succeed."""


@consume(Event.ORDER_PLACED, queue="orders.payment")
async def capture_payment(
    order: OrderEventBody, session: AsyncSession, publisher: BoundPublisher[AsyncSession], attempt_count: int
) -> None:
    """Captures the payment once, and publishes `payment.captured`."""
    if order.sku == FORBIDDEN_SKU:
        raise Reject(f"no payment is taken for {FORBIDDEN_SKU!r}")
    if order.sku == FLAKY_SKU and attempt_count == 1:
        raise PaymentProviderError("the payment provider did not answer")
    if await advance(session, order, from_=OrderStatus.PLACED, to=OrderStatus.PAID):
        await publisher.publish(Event.PAYMENT_CAPTURED, order)
