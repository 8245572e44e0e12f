"""Whether notifications arrive: one is sent in a circle."""

import asyncio
import secrets
from datetime import timedelta

from outbox.findings import Finding, warning, well
from outbox.postgres.pool import DRIVER_ERRORS, Connect, reason_of

PATIENCE = timedelta(seconds=3)
_CHECK = "listen"


async def examine_listening(connect: Connect) -> Finding:
    """Listens on one connection and notifies on another, as a relay does when it starts."""
    channel, heard = f"outbox_doctor_{secrets.token_hex(8)}", asyncio.Event()
    try:
        async with connect() as ears, connect() as hand, asyncio.timeout(PATIENCE.total_seconds()):
            await ears.add_listener(channel, lambda *_: heard.set())
            await hand.execute("select pg_catalog.pg_notify($1, '')", channel)
            await heard.wait()
    except TimeoutError:
        return warning(
            _CHECK,
            "notifications do not arrive, as behind a pooler in transaction mode: relays poll",
            "give them a direct address of the database: OUTBOX_LISTEN_URL",
        )
    except DRIVER_ERRORS as failure:
        return warning(_CHECK, f"listening failed: {reason_of(failure)}", "relays poll until it works")
    return well(_CHECK, "notifications arrive")
