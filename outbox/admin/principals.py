"""Principals and their roles."""

from dataclasses import dataclass
from enum import StrEnum

from outbox.errors import ConfigurationError


class Role(StrEnum):
    """A viewer reads; an operator also repairs, pauses and reveals masked values; an admin also deletes for good."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"

    def includes(self, other: "Role") -> bool:
        """Whether whoever has this role may do what `other` may."""
        return _RANKS[self] >= _RANKS[other]


_RANKS = {role: rank for rank, role in enumerate(Role)}


@dataclass(frozen=True, slots=True)
class Principal:
    """Somebody who is known: `name` is what the audit tells of them. The role may be given by its name.

    Raises `ConfigurationError` for a role that there is not.
    """

    name: str
    role: Role

    def __post_init__(self) -> None:
        if self.role not in tuple(Role):
            raise ConfigurationError(f"the role of a principal is one of {', '.join(Role)}, not {self.role!r}")
        object.__setattr__(self, "role", Role(self.role))
