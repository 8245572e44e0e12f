"""`/docs`: the API for people. Its viewer comes from the Internet; where that is out of reach, the page lists the endpoints."""

from collections.abc import Iterator
from html import escape

from fastapi import FastAPI, Request
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse

PATH = "/docs"
_EMPTY = '<div id="swagger-ui">\n    </div>'


def install(app: FastAPI) -> None:
    """Serves the page. The application is to be made with `docs_url=None`."""

    def docs(request: Request) -> HTMLResponse:
        root = str(request.scope.get("root_path", "")).rstrip("/")
        page = bytes(get_swagger_ui_html(openapi_url=f"{root}{app.openapi_url}", title=app.title).body).decode()
        return HTMLResponse(page.replace(_EMPTY, f'<div id="swagger-ui">{_listing(app, root)}</div>'))

    app.add_api_route(PATH, docs, include_in_schema=False)


def _listing(app: FastAPI, root: str) -> str:
    """What there is, without any script; the viewer takes its place when it has loaded."""
    return (
        '<main style="font: 16px/1.5 system-ui, sans-serif; max-width: 48rem; margin: 2rem auto; padding: 0 1rem">'
        f"<h1>{escape(app.title)} {escape(app.version)}</h1><p>{escape(app.summary or '')}</p>"
        f"<dl>{''.join(_endpoints(app))}</dl>"
        f'<p>All of it, for programs: <a href="{escape(root)}{app.openapi_url}">{app.openapi_url}</a></p></main>'
    )


def _endpoints(app: FastAPI) -> Iterator[str]:
    for path, operations in app.openapi()["paths"].items():
        for method, operation in operations.items():
            yield f"<dt><code>{method.upper()} {escape(path)}</code></dt><dd>{escape(operation.get('description', ''))}</dd>"
