"""`/docs`: API documentation with a self-hosted Swagger UI. Without JavaScript the page lists the endpoints."""

from collections.abc import Iterator
from functools import cache
from html import escape
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from fastapi import FastAPI, HTTPException, Request, Response, status
from fastapi.responses import FileResponse, HTMLResponse, PlainTextResponse

PATH = "/docs"
_PACKAGE = "fastapi_offline"
"""Package that contains the files of Swagger UI. Nothing else of it is used."""
_POLICY = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
)
_HEADERS = {
    # Scripts of the page can send requests with the admin's cookie, so the policy allows only the scripts of this service.
    "Content-Security-Policy": "; ".join(_POLICY),
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-cache",
}
_VIEWER = {"swagger-ui.css": "text/css", "swagger-ui-bundle.js": "text/javascript"}
_START = """\
SwaggerUIBundle({
  url: document.querySelector("link[rel=describedby]").href,
  dom_id: "#swagger-ui",
  deepLinking: true,
  validatorUrl: null,
  presets: [SwaggerUIBundle.presets.apis],
  layout: "BaseLayout",
});
"""
_STYLE = """\
#swagger-ui > main { font: 16px/1.5 system-ui, sans-serif; max-width: 48rem; margin: 2rem auto; padding: 0 1rem }
"""
_OURS = {"start.js": (_START, "text/javascript"), "page.css": (_STYLE, "text/css")}


def install(app: FastAPI) -> None:
    """Adds the page. The application must be created with `docs_url=None` and `redoc_url=None`."""

    def page(request: Request) -> HTMLResponse:
        _require_on(request)
        return HTMLResponse(_page(app), headers=_HEADERS)

    def file(request: Request, name: str) -> Response:
        _require_on(request)
        if name in _OURS:
            text, media_type = _OURS[name]
            return PlainTextResponse(text, headers=_HEADERS, media_type=media_type)
        folder = _viewer()
        if folder is None or name not in _VIEWER:
            raise HTTPException(status.HTTP_404_NOT_FOUND)
        return FileResponse(folder / name, headers=_HEADERS, media_type=_VIEWER[name])

    app.add_api_route(PATH, page, include_in_schema=False)
    app.add_api_route(f"{PATH}/{{name}}", file, include_in_schema=False)


def is_on(app: FastAPI) -> bool:
    """Whether the page is served, as `OUTBOX_DOCS` says."""
    settings = getattr(app.state, "settings", None)
    return settings is None or bool(settings.docs)


def _require_on(request: Request) -> None:
    if not is_on(request.app):
        raise HTTPException(status.HTTP_404_NOT_FOUND, "the documentation is turned off by OUTBOX_DOCS")


@cache
def _viewer() -> Path | None:
    """Returns the folder of Swagger UI's files; None if they are not installed."""
    return Path(str(files(_PACKAGE))) / "static" if find_spec(_PACKAGE) is not None else None


def _page(app: FastAPI) -> str:
    # Links are relative, so that they work behind a proxy that strips a prefix.
    document = f".{app.openapi_url}"
    scripts = '<script src="docs/swagger-ui-bundle.js"></script><script src="docs/start.js"></script>'
    return f"""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(app.title)}</title>
<link rel="icon" href="data:,">
<link rel="describedby" href="{document}">
<link rel="stylesheet" href="docs/swagger-ui.css">
<link rel="stylesheet" href="docs/page.css">
</head>
<body>
<div id="swagger-ui">{_listing(app, document)}</div>
{scripts if _viewer() is not None else ""}
</body>
</html>
"""


def _listing(app: FastAPI, document: str) -> str:
    """Returns the list of endpoints, which the viewer replaces when its script has loaded."""
    return (
        f"<main><h1>{escape(app.title)} {escape(app.version)}</h1><p>{escape(app.summary or '')}</p>"
        f"<dl>{''.join(_endpoints(app))}</dl>"
        f'<p>OpenAPI document: <a href="{document}">{app.openapi_url}</a></p></main>'
    )


def _endpoints(app: FastAPI) -> Iterator[str]:
    for path, operations in app.openapi()["paths"].items():
        for method, operation in operations.items():
            yield f"<dt><code>{method.upper()} {escape(path)}</code></dt><dd>{escape(operation.get('description', ''))}</dd>"
