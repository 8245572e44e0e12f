"""Build the dashboard from frontend/, or check it, with the machine's Node or one from a wheel.

    python scripts/dashboard.py                  build it; done in no time when its sources did not change
    python scripts/dashboard.py --if-possible    the same; where it fails, say so and end well, for the rest works without it
    python scripts/dashboard.py --check          format, lint, types, imports, texts, the API's client, tests, the first load

The build goes beside the Python module that serves it, in one step when it is complete.
"""

import argparse
import fcntl
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import built
import node as nodes
from node import Failed, Node

_FRONTEND = built.FRONTEND
_CACHE = built.ROOT / ".cache"
_PACKAGES_SECONDS = 900
_TOOL_SECONDS = 300
# What npm says when it cannot reach where packages come from.
_UNREACHABLE = re.compile(
    r"\b(EAI_AGAIN|ENOTFOUND|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT)\b"
)
_LONGEST_OUTPUT = 8000
_LINES_OF_NPM = 20  # how it is to be used comes after that
_CHECKS = {
    "tests (vitest)": ("node_modules/vitest/vitest.mjs", "run", "--reporter=dot"),
    "types (tsc)": ("node_modules/typescript/bin/tsc", "--noEmit"),
    "client of the API (openapi-typescript)": ("scripts/client.mjs", "--check"),
    "format and lint (biome)": ("node_modules/@biomejs/biome/bin/biome", "check", "--error-on-warnings", "."),
    "imports and texts": ("scripts/structure.mjs",),
    "first load": ("scripts/budget.mjs",),
}

Step = Callable[[Node | None], Node]


def main(arguments: Sequence[str] | None = None) -> int:
    """Build or check; the exit status."""
    parser = argparse.ArgumentParser(description="Build the dashboard, or check it.")
    parser.add_argument("--if-possible", action="store_true", help="end well where it cannot be built")
    parser.add_argument("--check", action="store_true", help="check its sources too")
    options = parser.parse_args(arguments)
    if built.problem() is None and not options.check:
        print("dashboard: up to date")
        return 0
    try:
        node = _ready()
        return _check(node) if options.check else 0
    except Failed as failed:
        _complain(failed)
    if options.if_possible:
        print(f"dashboard: going on {_with_what_there_is()}", file=sys.stderr)
    return 0 if options.if_possible else 1


def _ready() -> Node:
    """Does what is missing: Node, its packages, the pages."""
    with _one_at_a_time():
        began, node = time.monotonic(), nodes.of_this_machine() or nodes.of_the_wheel()
        steps = list(_missing_steps(node))
        for number, (what, step) in enumerate(steps, start=1):
            print(f"dashboard: [{number}/{len(steps)}] {what}", flush=True)
            node = step(node)
        if steps:
            print(f"dashboard: ready after {time.monotonic() - began:.0f} s")
    assert node is not None, "the first step finds one"
    return node


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    _CACHE.mkdir(exist_ok=True)
    with (_CACHE / "dashboard.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _missing_steps(node: Node | None) -> Iterator[tuple[str, Step]]:
    if node is None:
        yield (
            "Node, from a wheel that is pinned in requirements/node.lock (this machine has none that is new enough)",
            nodes.installed,
        )
    if not _has_packages():
        origin = f" ({node.origin})" if node else ""
        yield f"packages, pinned in frontend/package-lock.json{origin}", _install_packages
    if built.problem() is not None:
        yield "pages (vite)", _make_pages


def _has_packages() -> bool:
    """Whether npm has installed what the lock names; packages for other machines may be missing."""
    try:
        wanted = json.loads((_FRONTEND / "package-lock.json").read_text())["packages"]
        present = json.loads((_FRONTEND / "node_modules" / ".package-lock.json").read_text())["packages"]
    except FileNotFoundError:
        return False
    here = {name: package.get("integrity") for name, package in present.items()}
    return all(
        here[name] == package.get("integrity") if name in here else package.get("optional", False)
        for name, package in wanted.items()
        if name
    )


def _install_packages(node: Node | None) -> Node:
    assert node is not None
    quick = ("--prefer-offline", "--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-timeout=60000")
    quiet = ("--no-audit", "--no-fund", "--no-progress", "--loglevel=error")
    ended = node.run([*node.npm, "ci", "--ignore-scripts", *quick, *quiet], _FRONTEND, _PACKAGES_SECONDS)
    if ended.returncode == 0:
        return node
    unreachable = _UNREACHABLE.search(ended.stdout)
    if unreachable:
        raise Failed(
            f"its packages could not be fetched, because npm's registry cannot be reached ({unreachable[1]}): "
            "try again with a network, or name another one with `npm config set registry ADDRESS`"
        )
    said = "\n".join(ended.stdout.splitlines()[:_LINES_OF_NPM])
    raise Failed("its packages could not be installed; what npm says is above", said)


def _make_pages(node: Node | None) -> Node:
    """Builds elsewhere, so that whoever is being served never finds half of it."""
    assert node is not None
    sources, folder = built.fingerprint(), _CACHE / "dashboard"
    arguments = ("node_modules/vite/bin/vite.js", "build", "--outDir", str(folder), "--emptyOutDir", "--logLevel", "warn")
    ended = node.run([str(node.program), *arguments], _FRONTEND, _TOOL_SECONDS)
    if ended.returncode != 0:
        raise Failed("it could not be built; what vite says is above", ended.stdout)
    built.compress(folder)
    built.write_record(folder, sources)
    old = _CACHE / "dashboard.old"
    shutil.rmtree(old, ignore_errors=True)
    if built.STATIC.exists():
        shutil.move(built.STATIC, old)
    built.STATIC.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(folder, built.STATIC)
    shutil.rmtree(old, ignore_errors=True)
    return node


def _check(node: Node) -> int:
    """Runs the checks, two at a time."""

    def run(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
        return node.run([str(node.program), *arguments], _FRONTEND, _TOOL_SECONDS)

    failures = 0
    with ThreadPoolExecutor(max_workers=2) as two:
        running = {what: two.submit(run, arguments) for what, arguments in _CHECKS.items()}
        for what, check in running.items():
            failures += _tell(what, check.result())
    return 1 if failures else 0


def _tell(what: str, ended: subprocess.CompletedProcess[str]) -> bool:
    """Whether it failed; a check that went well says one line at most."""
    lines = ended.stdout.strip().splitlines()
    if ended.returncode == 0:
        print(f"check: dashboard, {what}" + (f": {lines[0]}" if len(lines) == 1 else ""), flush=True)
        return False
    print(f"check: dashboard, {what}: failed\n{ended.stdout[-_LONGEST_OUTPUT:]}", flush=True)
    return True


def _complain(failed: Failed) -> None:
    if failed.output:
        print(failed.output[-_LONGEST_OUTPUT:].rstrip(), file=sys.stderr)
    print(f"dashboard: {failed}", file=sys.stderr)


def _with_what_there_is() -> str:
    if (built.STATIC / "index.html").exists():
        return "with the one that was built before"
    return "without it: the API and the command line do not need it"


if __name__ == "__main__":
    sys.exit(main())
