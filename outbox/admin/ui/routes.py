"""`/ui/`: every address below it serves the page, or one of its files."""

from html import escape

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from outbox.admin.ui.files import Build, BuiltFiles, File

_POLICY = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'self'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
)
POLICY = "; ".join(_POLICY)
"""What the page may load and do: its own files, and requests to where it came from. Nothing inline, no markup from strings."""
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_FOREVER = "public, max-age=31536000, immutable"
_MISSING = """\
<!doctype html>
<html lang="en">
<title>Outbox: no dashboard</title>
<h1>The dashboard was not built</h1>
<p>This copy of Outbox came without its dashboard. The admin API next to it works, and so does the command line.</p>
<p>In a working copy, <code>make dashboard</code> builds it, with Node from the machine or from a package. A released
package of Outbox contains it.</p>
"""


def ui_routes(built: BuiltFiles | None = None, *, host_login: str | None = None) -> APIRouter:
    """The dashboard's page and files, open to everybody: they hold no data. Without `built`, those of this package.

    `host_login` is where the application logs people in, empty if that is not known; None: the admin does it.
    """
    dashboard = _Dashboard(built or BuiltFiles(), host_login)
    router = APIRouter(include_in_schema=False)
    router.add_api_route("/ui", _to_the_page, methods=["GET", "HEAD"])
    router.add_api_route("/ui/{address:path}", dashboard.served, methods=["GET", "HEAD"])
    return router


async def _to_the_page(request: Request) -> Response:
    """Relative, so that it holds under every prefix."""
    query = f"?{request.url.query}" if request.url.query else ""
    return Response(status_code=307, headers={**_HEADERS, "Cache-Control": "no-cache", "Location": f"./ui/{query}"})


class _Dashboard:
    """Answers requests with what was built."""

    def __init__(self, built: BuiltFiles, host_login: str | None) -> None:
        self._built = built
        self._head = "" if host_login is None else f'<meta name="outbox-host-login" content="{escape(host_login)}" />'

    async def served(self, request: Request, address: str) -> Response:
        build = await run_in_threadpool(self._built.current)
        answer = _page(_MISSING, status=404) if build is None else _answer(build, request, address, self._head)
        return _without_body(answer) if request.method == "HEAD" else answer


def _answer(build: Build, request: Request, address: str, head: str) -> Response:
    file = build.files.get(address)
    if file is not None:
        return _file(file, request)
    if _names_a_file(address):
        headers = {**_HEADERS, "Cache-Control": "no-store"}
        return Response("There is no such file.\n", status_code=404, media_type="text/plain", headers=headers)
    return _page(build.page_at(_depth(request, address), head))


def _file(file: File, request: Request) -> Response:
    zipped = file.gzipped if _takes_gzip(request) else None
    etag = f'"{file.digest}{"" if zipped is None else "-gzip"}"'
    headers = {**_HEADERS, "Cache-Control": _FOREVER if file.immutable else "no-cache", "ETag": etag, "Vary": "Accept-Encoding"}
    if _has_it(request, etag):
        return Response(status_code=304, headers=headers)
    if zipped is not None:
        headers["Content-Encoding"] = "gzip"
    return Response(file.content if zipped is None else zipped, media_type=file.media_type, headers=headers)


def _takes_gzip(request: Request) -> bool:
    for choice in request.headers.get("accept-encoding", "").lower().replace(" ", "").split(","):
        name, _, weight = choice.partition(";q=")
        if name == "gzip":
            return not weight or weight.strip("0.") != ""
    return False


def _has_it(request: Request, etag: str) -> bool:
    known = [each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")]
    return etag in known or "*" in known


def _names_a_file(address: str) -> bool:
    """Whether it means a file, one of the build or one that somebody hopes for, and no page."""
    parts = address.split("/")
    return parts[0] == "assets" or parts[0].startswith(".") or ".." in parts or "\0" in address


def _depth(request: Request, address: str) -> int:
    """How many segments the browser sees below `/ui/`; an encoded slash is part of one."""
    raw: bytes = request.scope.get("raw_path") or b""
    return max(0, address.count("/") - raw.upper().count(b"%2F"))


def _page(text: str, status: int = 200) -> Response:
    return Response(text, status_code=status, media_type="text/html", headers={**_HEADERS, "Cache-Control": "no-store"})


def _without_body(answer: Response) -> Response:
    return Response(status_code=answer.status_code, headers=dict(answer.headers))
