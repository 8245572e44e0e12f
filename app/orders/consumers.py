"""The consumers of the example, for `outbox worker app.orders.consumers:consumers`."""

from app.orders.email import send_confirmation
from app.orders.journal import journal
from app.orders.payment import capture_payment
from app.orders.screening import screen_order
from app.orders.stock import reserve_stock

consumers = (capture_payment, screen_order, reserve_stock, send_confirmation, *journal)
