"""A worked example: an order is placed over HTTP, and events carry it through payment and stock to its confirmation.

    POST /orders ── order.placed ──► payment ── payment.captured ──► stock ── stock.reserved ──► email ── order.confirmed
                                └──► screening ── order.rejected, for what may not be sold

The journal listens to all of them and notes what happened to each order. Each handler may run twice for one message, so each
does its work only if the order's status says that it is due; its writes and the event that it publishes commit together.
"""
