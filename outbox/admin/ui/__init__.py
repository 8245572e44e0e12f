"""The dashboard below `/ui/`: serves the built files of `frontend/` without authentication. Its data comes from the API."""

from collections.abc import Collection
from html import escape
from pathlib import Path
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from outbox.admin.access import outbox_of
from outbox.admin.oidc import seen_path

STATIC = Path(__file__).parent / "static"
_POLICY = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'self'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
)
POLICY = "; ".join(_POLICY)
"""Content security policy: the page loads its own files and requests its own origin. No inline code, no markup from strings."""
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
LAST_COOKIE = "outbox_last"
"""Cookie with the name of the outbox whose dashboard was opened last."""
_LAST_AGE_SECONDS = 365 * 86_400
_FOREVER = "public, max-age=31536000, immutable"
# The operating system's table may have other types for these suffixes, and browsers reject scripts with a wrong type.
_MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
_BASE = '<base href="./" />'
_MISSING = """\
<!doctype html>
<html lang="en">
<title>Outbox: no dashboard</title>
<h1>The dashboard was not built</h1>
<p>This copy of Outbox does not contain the dashboard. The admin API and the command line work without it.</p>
<p>Run <code>make dashboard</code> in the repository to build it. Released packages of Outbox contain it.</p>
"""


def is_built(folder: Path = STATIC) -> bool:
    """Returns whether the dashboard was built."""
    return (folder / "index.html").is_file()


def ui_routes(folder: Path = STATIC, *, host_login: str | None = None, outboxes: Collection[str] | None = None) -> APIRouter:
    """Returns the routes of the dashboard's page and files in `folder`. They are public, because they contain no data.

    `host_login` is the application's login page, empty if unknown. None: users log in with the admin's own login.
    `outboxes` are the names that the path may have; None if the router serves a single one.
    """
    dashboard = _Dashboard(folder, host_login, outboxes)
    router = APIRouter(include_in_schema=False)
    router.add_api_route("/ui", _redirect_to_page, methods=["GET", "HEAD"])
    router.add_api_route("/ui/{address:path}", dashboard.answer, methods=["GET", "HEAD"])
    return router


async def _redirect_to_page(request: Request) -> Response:
    # A relative location is correct under every prefix.
    query = f"?{request.url.query}" if request.url.query else ""
    return Response(status_code=307, headers={**_HEADERS, "Cache-Control": "no-cache", "Location": f"./ui/{query}"})


class _Dashboard(StaticFiles):
    """Serves the files of a build, and the page at every other path: the browser has the routes."""

    def __init__(self, folder: Path, host_login: str | None, outboxes: Collection[str] | None) -> None:
        super().__init__(directory=folder, check_dir=False)
        self._page = folder / "index.html"
        self._outboxes = outboxes
        self._head = "" if host_login is None else f'<meta name="outbox-host-login" content="{escape(host_login)}" />'

    async def answer(self, request: Request, address: str) -> Response:
        name = None if self._outboxes is None else outbox_of(request)
        if self._outboxes is not None and name not in self._outboxes:
            return _text("There is no such outbox.\n", "text/plain", status=404)
        file = await self._file(request, address)
        if file is not None:
            return file
        try:
            page = await run_in_threadpool(self._page.read_text, "utf-8")
        except OSError:
            return _text(_MISSING, "text/html", status=404)
        # A missing file must be a 404, not the page: assets of another build, and files that scanners look for.
        parts = address.split("/")
        if parts[0] == "assets" or parts[0].startswith(".") or ".." in parts or "\0" in address:
            return _text("There is no such file.\n", "text/plain", status=404)
        # A relative base is correct under every prefix, even one that a proxy strips without a header. Browsers resolve it
        # against the path as it was sent, where an encoded slash does not separate segments.
        raw: bytes = request.scope.get("raw_path") or b""
        depth = max(0, address.count("/") - raw.upper().count(b"%2F"))
        head = self._head if name is None else f'{self._head}<meta name="outbox-name" content="{name}" />'
        response = _text(page.replace(_BASE, f'<base href="{"../" * depth or "./"}" />{head}', 1), "text/html")
        if name is not None:
            response.set_cookie(
                LAST_COOKIE,
                name,
                max_age=_LAST_AGE_SECONDS,
                path=quote(seen_path(request).removesuffix(f"/{name}/ui/{address}")) or "/",
                secure=request.url.scheme == "https",
                httponly=True,
                samesite="lax",
            )
        return response

    async def _file(self, request: Request, address: str) -> Response | None:
        # No hidden files, no second path to the same file such as `a//b`, and no files that are internal to the build.
        hidden = "/." in f"/{address}" or "//" in address or address.endswith(("/", ".gz"))
        if hidden or address in ("index.html", "build.json"):
            return None
        for name in (f"{address}.gz", address) if _accepts_gzip(request) else (address,):
            try:
                response = await self.get_response(name, request.scope)
            except HTTPException:
                continue
            keep = _FOREVER if address.startswith("assets/") else "no-cache"
            response.headers.update({**_HEADERS, "Cache-Control": keep, "Vary": "Accept-Encoding"})
            if response.status_code == 304:
                return response
            if name != address:
                response.headers["Content-Encoding"] = "gzip"
            if media_type := _MEDIA_TYPES.get(Path(address).suffix):
                response.headers["Content-Type"] = media_type
            return response
        return None


def _accepts_gzip(request: Request) -> bool:
    for choice in request.headers.get("accept-encoding", "").lower().replace(" ", "").split(","):
        name, _, weight = choice.partition(";q=")
        if name == "gzip":
            return not weight or weight.strip("0.") != ""
    return False


def _text(text: str, media_type: str, *, status: int = 200) -> Response:
    headers = {**_HEADERS, "Cache-Control": "no-store"}
    return Response(text, status_code=status, media_type=media_type, headers=headers)
