"""The operating system's user that a server runs as, since PostgreSQL refuses to run as root."""

import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outbox.embedded.errors import EmbeddedPostgresError

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
        return all(self._may_enter(folder.stat()) for folder in path.resolve().parents)

    def _may_enter(self, folder: os.stat_result) -> bool:
        if folder.st_uid == self.uid:
            return bool(folder.st_mode & stat.S_IXUSR)
        if folder.st_gid == self.gid:
            return bool(folder.st_mode & stat.S_IXGRP)
        return bool(folder.st_mode & stat.S_IXOTH)


def account_for(existing: Path) -> Account:
    """Ourselves; for root, who owns the existing data, else `postgres` or `nobody`."""
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid(), switched=False)
    if existing.exists() and (owner := existing.stat().st_uid) != 0:
        return _account_of(owner)
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


def _account_of(uid: int) -> Account:
    try:
        return Account(uid, pwd.getpwuid(uid).pw_gid, switched=True)
    except KeyError:
        return account_named(*_CANDIDATES)
