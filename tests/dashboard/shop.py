"""A worker whose payments fail until the file is there that `SHOP_FIXED` names."""

import os
from pathlib import Path
from typing import Any

from outbox import Consumer

QUEUE = "payments.capture"


class CardDeclinedError(Exception):
    """The bank said no."""


class LedgerOfflineError(Exception):
    """The ledger is away."""


def capture(body: dict[str, Any]) -> None:
    """Fails as the body says, unless it was fixed."""
    if Path(os.environ["SHOP_FIXED"]).exists() or body.get("fails") is None:
        return
    kind = {"card": CardDeclinedError, "ledger": LedgerOfflineError}[body["fails"]]
    raise kind(body.get("why") or f"payment {body.get('payment')} of order {body.get('order')} failed")


consumers = [Consumer("payment.requested", capture, queue=QUEUE, retry_delays=())]
