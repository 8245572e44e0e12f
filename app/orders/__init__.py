"""The example: an order is placed over HTTP, and events take it through payment and stock to its confirmation.

    POST /orders ── order.placed ──► payment ── payment.captured ──► stock ── stock.reserved ──► email ── order.confirmed
                                └──► screening ── order.rejected, for forbidden goods

The journal consumes all events and records them for each order. A handler may run twice for one message, so it changes an order
only if the order has the expected status. Its writes and the event that it publishes commit together.
"""
