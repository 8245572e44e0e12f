"""`/ui/`: every address below it is the same page, which reads its address itself, or one of the page's files."""

from fastapi import APIRouter, Request, Response
from fastapi.responses import FileResponse, HTMLResponse
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse

from outbox.admin.ui import files

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'self'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
"""What the page may load and do: its own files, and requests to where it came from. Nothing inline."""
_HEADERS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Content-Security-Policy": POLICY}
_MISSING = """\
<!doctype html>
<html lang="en">
<title>Outbox: no dashboard</title>
<h1>The dashboard was not built</h1>
<p>The admin API works without it. From a working copy, <code>make dashboard</code> builds it, with Node from this machine or
from a wheel; a released package contains it.</p>
"""


def ui_routes() -> APIRouter:
    """The dashboard's page and files, open to everybody: they hold no data."""
    router = APIRouter(include_in_schema=False)
    router.add_api_route("/ui", _to_the_page, methods=["GET", "HEAD"])
    router.add_api_route("/ui/{address:path}", _served, methods=["GET", "HEAD"])
    return router


async def _to_the_page(request: Request) -> Response:
    """Relative, so that it holds under every prefix."""
    query = f"?{request.url.query}" if request.url.query else ""
    return RedirectResponse(f"./ui/{query}", status_code=307)


async def _served(address: str) -> Response:
    return await run_in_threadpool(_answer, address)


def _answer(address: str) -> Response:
    if not files.is_built():
        return HTMLResponse(_MISSING, status_code=503, headers=_HEADERS)
    file = files.found(address) if address else None
    if file is not None and file.path.name != "index.html":
        keeping = "public, max-age=31536000, immutable" if file.immutable else "no-cache"
        return FileResponse(file.path, media_type=file.media_type, headers={**_HEADERS, "Cache-Control": keeping})
    if address.startswith("assets/"):
        return Response("There is no such file.", status_code=404, media_type="text/plain", headers=_HEADERS)
    return HTMLResponse(files.index(address.count("/")), headers={**_HEADERS, "Cache-Control": "no-store"})
