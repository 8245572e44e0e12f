"""Dead letters over HTTP: lists, groups, one of them with everything."""

from outbox.admin.dlq import detail, groups, listing

ROUTERS = (listing.router, groups.router, detail.router)
"""In this order: `/dlq/groups` is no dead letter."""
