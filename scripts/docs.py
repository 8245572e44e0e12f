"""Build the documentation site from docs/ into build/docs/site. Fail on warnings, dead links and external files.

    python scripts/docs.py

The pages are copied to build/docs/pages first, where scripts/docs_api.py fills in the API reference from the docstrings of the
installed package. For language models the site also contains the pages as Markdown, `llms.txt` with a list of them, and
`llms-full.txt` with their full text.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import docs_api

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs"
CONFIG = ROOT / "zensical.toml"
BUILD = ROOT / "build" / "docs"
STAGED = BUILD / "pages"
SITE = BUILD / "site"
_LINK = re.compile(r"\[(?P<text>[^\]\[]*)\]\((?P<target>\.\./[^)\s]*)\)")
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_FETCHED = {"script": "src", "link": "href", "img": "src", "source": "srcset", "iframe": "src"}


def main() -> int:
    """Build and check the site. Return the exit code."""
    configuration = tomllib.loads(CONFIG.read_text())["project"]
    navigation = list(_pages(configuration["nav"]))
    _stage()
    built = _build()
    if built.returncode != 0:
        print(_ANSI.sub("", built.stdout).partition("Traceback")[0])
        return 1
    _write_for_models(configuration, navigation)
    problems = [*_missing_from_navigation(navigation), *_problems_of(SITE)]
    for problem in problems:
        print(problem)
    if not problems:
        print(f"{len(list(SITE.rglob('*.html')))} pages: open {SITE.relative_to(ROOT)}/index.html")
    return 1 if problems else 0


def _stage() -> None:
    """Copies the pages to the build folder, with the API reference filled in and the changelog as a page."""
    shutil.rmtree(BUILD, ignore_errors=True)
    shutil.copytree(PAGES, STAGED)
    shutil.copy(CONFIG, BUILD)  # Zensical clears .cache next to its configuration, which must not be the project's
    shutil.copy(ROOT / "CHANGELOG.md", STAGED / "changelog.md")
    for page in STAGED.rglob("*.md"):
        text = page.read_text()
        if docs_api.PLACE in text:
            text = text.replace(docs_api.PLACE, docs_api.reference())
        page.write_text(_LINK.sub(partial(_local_link, page), text))


def _local_link(page: Path, match: re.Match[str]) -> str:
    """Returns the link, or only its text if it leads out of docs/, because the site does not contain the target."""
    path = match["target"].partition("#")[0]
    if path.endswith("CHANGELOG.md"):
        return f"[{match['text']}]({os.path.relpath(STAGED / 'changelog.md', page.parent)})"
    return match[0] if (page.parent / path).resolve().is_relative_to(STAGED) else match["text"]


def _build() -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", CONFIG.name]
    environment = os.environ | {"NO_COLOR": "1"}
    return subprocess.run(command, cwd=BUILD, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def _pages(nav: list[dict[str, object]], section: str = "") -> Iterator[tuple[str, str, str]]:
    """Yields section, title and path of each page of the navigation."""
    for entry in nav:
        for title, target in entry.items():
            if isinstance(target, str):
                yield section, title, target
            elif isinstance(target, list):
                yield from _pages(target, section=title)


def _missing_from_navigation(navigation: list[tuple[str, str, str]]) -> Iterator[str]:
    """Yields pages without an entry: decisions belong in their index, all other pages in the navigation."""
    named = {path for _, _, path in navigation}
    for page in sorted(STAGED.glob("*.md")):
        if page.name not in named:
            yield f"docs/{page.name} is not in the navigation of zensical.toml"
    index = (STAGED / "decisions" / "README.md").read_text()
    for page in sorted(STAGED.glob("decisions/0*.md")):
        if f"({page.name})" not in index:
            yield f"docs/decisions/README.md does not list {page.name}"


def _write_for_models(configuration: dict[str, str], navigation: list[tuple[str, str, str]]) -> None:
    """Writes the pages as Markdown, `llms.txt` and `llms-full.txt`."""
    for page in STAGED.rglob("*.md"):
        shutil.copy(page, SITE / page.relative_to(STAGED))
    lines, whole, current = [f"# {configuration['site_name']}", "", f"> {configuration['site_description']}"], [], None
    for section, title, path in navigation:
        text = (STAGED / path).read_text()
        if section != current:
            lines += ["", f"## {section or 'Pages'}", ""]
            current = section
        lines.append(f"- [{title}]({path}): {_summary(text)}")
        whole.append(f"<!-- {path} -->\n\n{text.strip()}\n")
    (SITE / "llms.txt").write_text("\n".join(lines) + "\n")
    (SITE / "llms-full.txt").write_text("\n".join(whole))


def _summary(text: str) -> str:
    """Returns the first sentence under the title, without links."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    paragraphs = [part.strip() for part in prose.split("\n\n")[1:] if part.strip() and part.strip()[0] not in "#|<>"]
    line = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(paragraphs[0].split())) if paragraphs else ""
    return re.split(r"(?<=[.!?]) ", line)[0]


# --- checks of the built site -------------------------------------------------------------------------------------------


class _Page(HTMLParser):
    """The anchors, links and loaded files of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: set[str] = set()
        self.fetched: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value}
        if identifier := given.get("id"):
            self.anchors.add(identifier)
        if tag == "a" and "href" in given:
            self.links.add(given["href"])
        if (attribute := _FETCHED.get(tag)) and attribute in given:
            self.fetched.add(given[attribute])


def _problems_of(site: Path) -> Iterator[str]:
    pages = {path: _Page(path.read_text()) for path in site.rglob("*.html") if path.name != "404.html"}
    for path, page in sorted(pages.items()):
        name = path.relative_to(site)
        for address in sorted(page.fetched):
            if urlsplit(address).netloc:
                yield f"{name} loads {address}, which is external"
        for address in sorted(page.links | page.fetched):
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                yield f"{name} links to {address}, which does not exist"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                yield f"{name} links to {address}, but the heading does not exist"


if __name__ == "__main__":
    sys.exit(main())
