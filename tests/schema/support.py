"""Runs the migrations as a user does."""

import asyncio
from argparse import Namespace
from collections.abc import Callable
from io import StringIO
from pathlib import Path

from alembic import command
from alembic.config import Config

REPOSITORY = Path(__file__).parents[2]


class Alembic:
    """Runs the migrations as the command line does."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def upgrade(self, to: str = "head") -> None:
        await self._run(lambda config: command.upgrade(config, to))

    async def downgrade(self, to: str = "base") -> None:
        await self._run(lambda config: command.downgrade(config, to))

    async def current(self) -> str:
        return await self._run(command.current)

    async def upgrade_sql(self) -> str:
        return await self._run(lambda config: command.upgrade(config, "head", sql=True))

    async def downgrade_sql(self) -> str:
        return await self._run(lambda config: command.downgrade(config, "head:base", sql=True))

    async def _run(self, do: Callable[[Config], object]) -> str:
        output = StringIO()
        config = Config(
            REPOSITORY / "alembic.ini", stdout=output, output_buffer=output, cmd_opts=Namespace(x=[f"url={self._url}"])
        )
        await asyncio.to_thread(do, config)
        return output.getvalue()
