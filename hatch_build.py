"""Has the packages contain the dashboard: a build without it, or with one that is not of these sources, fails."""

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent / "scripts"))
import built


class Dashboard(BuildHookInterface):  # type: ignore[type-arg]
    """Looks at what was built. It builds nothing itself, so that a source distribution becomes a wheel without Node."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Before files are packed; an editable installation takes what is there, also nothing."""
        problem = built.problem()
        if version != "editable" and problem is not None:
            raise RuntimeError(f"the dashboard {problem}, and a package without it would be wrong: run `make dashboard` first")
        build_data["artifacts"].append(f"/{built.STATIC.relative_to(built.ROOT)}/")
