"""One statement in each driver's spelling, and its parameters."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from outbox.postgres.names import TableName

Values = tuple[Sequence[Any] | None, ...]
"""One array for each parameter of a statement."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement on `table`, whose `parameters` are arrays.

    `numbered` has them as asyncpg does (`$1`, in the order of `parameters`), `named` as SQLAlchemy (`:body`), `formatted` as
    psycopg (`%(body)s`).
    """

    table: TableName
    parameters: tuple[str, ...]
    numbered: str
    named: str
    formatted: str

    @classmethod
    def rendered(cls, table: TableName, parameters: tuple[str, ...], render: Callable[[Mapping[str, str]], str]) -> "Statement":
        """What `render` makes of the spellings of the parameters."""
        return cls(
            table=table,
            parameters=parameters,
            numbered=render({name: f"${number}" for number, name in enumerate(parameters, start=1)}),
            named=render({name: f":{name}" for name in parameters}),
            formatted=render({name: f"%({name})s" for name in parameters}),
        )

    def by_name(self, values: Values) -> Mapping[str, Sequence[Any] | None]:
        """`values` for drivers that name parameters."""
        return dict(zip(self.parameters, values, strict=True))
