"""What an installation hides, from the options that say so."""

from collections.abc import Mapping
from typing import Any

from outbox.masking import Masking


def masking_of(given: Mapping[str, Any]) -> Masking:
    """What this installation hides. Raises `ConfigurationError` for keys and places that are none."""
    return Masking().also(*given.get("mask_keys") or (), paths=given.get("mask_paths") or ())
