"""A chain without the secrets that errors may quote."""

from dataclasses import replace

from outbox.chains.model import Chain, Leg, Node, Try, TryError
from outbox.masking import Masking


def masked(chain: Chain, masking: Masking) -> Chain:
    """The same chain, its errors masked."""
    return replace(chain, nodes=tuple(_node(node, masking) for node in chain.nodes))


def _node(node: Node, masking: Masking) -> Node:
    return replace(node, last_error=_text(node.last_error, masking), legs=tuple(_leg(leg, masking) for leg in node.legs))


def _leg(leg: Leg, masking: Masking) -> Leg:
    return replace(leg, tries=tuple(_try(each, masking) for each in leg.tries))


def _try(each: Try, masking: Masking) -> Try:
    error = each.error
    if error is None:
        return each
    return replace(each, error=TryError(type=masking.error_type(error.type), message=masking.error_text(error.message)))


def _text(text: str | None, masking: Masking) -> str | None:
    """What keeps a message in the outbox: the error of a send, or a word such as `unroutable`."""
    return None if text is None else masking.error_type(text)
