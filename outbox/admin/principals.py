"""Who asks, and what they may do."""

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """What somebody may do: look; also repair and pause, and see what is masked; also delete for good."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"

    def includes(self, other: "Role") -> bool:
        """Whether whoever has this role may do what `other` may."""
        return _RANKS[self] >= _RANKS[other]


_RANKS = {role: rank for rank, role in enumerate(Role)}


@dataclass(frozen=True, slots=True)
class Principal:
    """Somebody who is known: `name` is what the audit tells of them."""

    name: str
    role: Role
