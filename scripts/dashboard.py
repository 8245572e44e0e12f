"""Build the dashboard from frontend/, or check it, with the installed Node or one from a wheel.

    python scripts/dashboard.py                  build it if its sources changed
    python scripts/dashboard.py --if-possible    also succeed if the build fails: the service works without the dashboard
    python scripts/dashboard.py --check          check format, lint, types, imports, texts, API client, tests and size

A complete build replaces the previous one next to the Python module that serves it.
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
# Error codes of npm when it cannot reach the registry.
_UNREACHABLE = re.compile(
    r"\b(EAI_AGAIN|ENOTFOUND|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT)\b"
)
_LONGEST_OUTPUT = 8000
_NPM_LINES = 20  # usage text follows after that
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
    """Build or check. Return the exit code."""
    parser = argparse.ArgumentParser(description="Build the dashboard, or check it.")
    parser.add_argument("--if-possible", action="store_true", help="exit with 0 even if the build fails")
    parser.add_argument("--check", action="store_true", help="also check the sources")
    options = parser.parse_args(arguments)
    if built.problem() is None and not options.check:
        print("dashboard: up to date")
        return 0
    try:
        node = _prepare()
        return _check(node) if options.check else 0
    except Failed as failed:
        _print_failure(failed)
    if options.if_possible:
        print(f"dashboard: continuing {_fallback()}", file=sys.stderr)
    return 0 if options.if_possible else 1


def _prepare() -> Node:
    """Performs the missing steps: install Node, install packages, build."""
    with _lock():
        began, node = time.monotonic(), nodes.from_path() or nodes.from_wheel()
        steps = list(_missing_steps(node))
        for number, (what, step) in enumerate(steps, start=1):
            print(f"dashboard: [{number}/{len(steps)}] {what}", flush=True)
            node = step(node)
        if steps:
            print(f"dashboard: ready after {time.monotonic() - began:.0f} s")
    assert node is not None, "the first step installs it"
    return node


@contextmanager
def _lock() -> Iterator[None]:
    _CACHE.mkdir(exist_ok=True)
    with (_CACHE / "dashboard.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _missing_steps(node: Node | None) -> Iterator[tuple[str, Step]]:
    if node is None:
        yield (
            "Node from the wheel in requirements/node.lock, because this machine has none that is new enough",
            nodes.install,
        )
    if not _has_packages():
        origin = f" ({node.origin})" if node else ""
        yield f"packages, pinned in frontend/package-lock.json{origin}", _install_packages
    if built.problem() is not None:
        yield "pages (vite)", _make_pages


def _has_packages() -> bool:
    """Whether npm has installed the packages of the lock. Optional packages for other platforms may be missing."""
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
            f"packages could not be downloaded, because the npm registry is unreachable ({unreachable[1]}): "
            "check the network, or set another registry with `npm config set registry ADDRESS`"
        )
    said = "\n".join(ended.stdout.splitlines()[:_NPM_LINES])
    raise Failed("packages could not be installed; see the output of npm above", said)


def _make_pages(node: Node | None) -> Node:
    """Builds in another folder and moves the result, so that a running service never serves an incomplete build."""
    assert node is not None
    sources, folder = built.fingerprint(), _CACHE / "dashboard"
    arguments = ("node_modules/vite/bin/vite.js", "build", "--outDir", str(folder), "--emptyOutDir", "--logLevel", "warn")
    ended = node.run([str(node.program), *arguments], _FRONTEND, _TOOL_SECONDS)
    if ended.returncode != 0:
        raise Failed("the build failed; see the output of vite above", ended.stdout)
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
            failures += _report(what, check.result())
    return 1 if failures else 0


def _report(what: str, ended: subprocess.CompletedProcess[str]) -> bool:
    """Prints the result of a check; a successful one prints one line. Returns whether it failed."""
    lines = ended.stdout.strip().splitlines()
    if ended.returncode == 0:
        print(f"check: dashboard, {what}" + (f": {lines[0]}" if len(lines) == 1 else ""), flush=True)
        return False
    print(f"check: dashboard, {what}: failed\n{ended.stdout[-_LONGEST_OUTPUT:]}", flush=True)
    return True


def _print_failure(failed: Failed) -> None:
    if failed.output:
        print(failed.output[-_LONGEST_OUTPUT:].rstrip(), file=sys.stderr)
    print(f"dashboard: {failed}", file=sys.stderr)


def _fallback() -> str:
    if (built.STATIC / "index.html").exists():
        return "with the previous build"
    return "without it; the API and the command line do not need it"


if __name__ == "__main__":
    sys.exit(main())
