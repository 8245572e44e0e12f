"""The dashboard's page and files, as browsers and proxies ask for them."""

import gzip
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import unquote

import httpx
import pytest
from fastapi import FastAPI
from starlette.types import Message

from outbox.admin import Admin, admin_router
from outbox.admin.ui import is_built, ui_routes
from outbox.errors import ConfigurationError

PAGE = '<!doctype html><base href="./" /><script type="module" src="./assets/index-CBXf7dUE.js"></script>'
SCRIPT = "console.log('hello');\n" * 100
FILES = {
    "index.html": PAGE,
    "build.json": "{}",
    "theme.js": "theme()",
    "icon.svg": "<svg/>",
    "assets/index-CBXf7dUE.js": SCRIPT,
    "assets/index-BUVCs1di.css": "body{}",
    ".vite/manifest.json": "{}",
}
SECURITY = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A build, and a secret next to it."""
    write(tmp_path / "static", FILES)
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "static/escape").symlink_to(tmp_path)
    return tmp_path / "static"


@pytest.fixture
async def client(folder: Path) -> AsyncIterator[httpx.AsyncClient]:
    """Of an application that has the dashboard under `/a/b/outbox`."""
    async with client_of(host(folder)) as client:
        yield client


def write(folder: Path, files: dict[str, str]) -> None:
    """As a build does: with a gzipped copy of what gets smaller."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if len(zipped := gzip.compress(text.encode())) < len(text):
            path.with_name(f"{path.name}.gz").write_bytes(zipped)


def host(folder: Path, prefix: str = "/a/b/outbox", **options: str) -> FastAPI:
    app = FastAPI(**options)  # type: ignore[arg-type]
    app.include_router(ui_routes(folder), prefix=prefix)
    return app


def client_of(app: FastAPI, root_path: str = "") -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app, root_path=root_path)
    return httpx.AsyncClient(transport=transport, base_url="http://host", headers={"accept-encoding": "identity"})


def base(answer: httpx.Response) -> str:
    """Where a browser takes the addresses in the page to lead to: each `../` takes a segment away, also an empty one."""
    assert answer.status_code == 200
    relative = answer.text.partition('<base href="')[2].partition('"')[0]
    assert relative == "./" or not relative.replace("../", "")
    segments = str(answer.url).partition("?")[0].split("/")
    return "/".join([*segments[: len(segments) - 1 - relative.count("../")], ""])


@pytest.mark.parametrize(
    "address",
    [
        "",
        "?view=groups",
        "dead-letters",
        "dead-letters/17?view=groups",
        "chains/a%2Fb%2Fc",
        "chains/a%252Fb",
        "a/b/c/d/",
        "a//b",
        "chains/%E2%82%AC",
    ],
)
async def test_every_path_below_ui_serves_the_page_with_a_correct_base(client: httpx.AsyncClient, address: str) -> None:
    answer = await client.get(f"/a/b/outbox/ui/{address}")
    assert base(answer) == "http://host/a/b/outbox/ui/"
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("prefix", ["", "/outbox", "/a-b/c.d/~e/outbox", "/{tenant}/outbox", "/büro"])
async def test_under_any_prefix(folder: Path, prefix: str) -> None:
    mounted = prefix.replace("{tenant}", "acme")
    async with client_of(host(folder, prefix)) as client:
        answer = await client.get(f"{mounted}/ui/dead-letters/17")
        assert base(answer) == str(httpx.URL(f"http://host{mounted}/ui/"))
        assert (await client.get(f"{mounted}/ui/assets/index-CBXf7dUE.js")).text == SCRIPT


async def test_the_page_works_behind_a_proxy_that_strips_a_prefix(folder: Path) -> None:
    for root_path in ("", "/shop"):
        async with client_of(host(folder), root_path) as client:
            answer = await client.get("/a/b/outbox/ui/chains/7")
            assert '<base href="../" />' in answer.text
            assert (await client.get("/a/b/outbox/ui")).headers["location"] == "./ui/"


async def test_in_an_application_within_another(folder: Path) -> None:
    outer = FastAPI()
    outer.mount("/inner", host(folder))
    async with client_of(outer) as client:
        assert base(await client.get("/inner/a/b/outbox/ui/chains/7")) == "http://host/inner/a/b/outbox/ui/"


async def test_a_path_without_a_trailing_slash_redirects_and_keeps_the_query(client: httpx.AsyncClient) -> None:
    answer = await client.get("/a/b/outbox/ui?view=groups&next=//evil")
    assert (answer.status_code, answer.headers["location"]) == (307, "./ui/?view=groups&next=//evil")
    assert str(answer.url.join(answer.headers["location"])) == "http://host/a/b/outbox/ui/?view=groups&next=//evil"
    assert has_our_headers(answer)


@pytest.mark.parametrize(
    ("name", "media_type", "keeping"),
    [
        ("assets/index-CBXf7dUE.js", "text/javascript; charset=utf-8", "public, max-age=31536000, immutable"),
        ("assets/index-BUVCs1di.css", "text/css; charset=utf-8", "public, max-age=31536000, immutable"),
        ("theme.js", "text/javascript; charset=utf-8", "no-cache"),
        ("icon.svg", "image/svg+xml", "no-cache"),
    ],
)
async def test_hashed_files_are_cached_permanently(client: httpx.AsyncClient, name: str, media_type: str, keeping: str) -> None:
    answer = await client.get(f"/a/b/outbox/ui/{name}")
    assert (answer.status_code, answer.text) == (200, FILES[name])
    assert (answer.headers["content-type"], answer.headers["cache-control"]) == (media_type, keeping)
    assert "content-encoding" not in answer.headers


async def test_an_unchanged_file_is_not_sent_again(client: httpx.AsyncClient) -> None:
    etag = (await client.get("/a/b/outbox/ui/theme.js")).headers["etag"]
    for known in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        answer = await client.get("/a/b/outbox/ui/theme.js", headers={"if-none-match": known})
        assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", etag)
        assert has_our_headers(answer)
    assert (await client.get("/a/b/outbox/ui/theme.js", headers={"if-none-match": '"other"'})).status_code == 200


@pytest.mark.parametrize(
    ("accepted", "zipped"),
    [
        ("gzip", True),
        ("br, GZip;q=0.5", True),
        ("gzip;q=0", False),
        ("gzip; q=0.00", False),
        ("br", False),
        ("", False),
        ("x-gzip", False),
    ],
)
async def test_clients_that_accept_gzip_get_it(client: httpx.AsyncClient, accepted: str, zipped: bool) -> None:
    path, headers = "/a/b/outbox/ui/assets/index-CBXf7dUE.js", {"accept-encoding": accepted}
    async with client.stream("GET", path, headers=headers) as answer:
        raw = b"".join([part async for part in answer.aiter_raw()])
    assert answer.headers.get("content-encoding") == ("gzip" if zipped else None)
    assert answer.headers["vary"] == "Accept-Encoding"
    assert int(answer.headers["content-length"]) == len(raw)
    assert (gzip.decompress(raw) if zipped else raw).decode() == SCRIPT
    same = await client.get(path, headers={**headers, "if-none-match": answer.headers["etag"]})
    assert same.status_code == 304
    plain = await client.get(path, headers={"accept-encoding": "identity"})
    assert (plain.headers["etag"] == same.headers["etag"]) is not zipped


async def test_incompressible_files_are_sent_uncompressed(client: httpx.AsyncClient) -> None:
    answer = await client.get("/a/b/outbox/ui/theme.js", headers={"accept-encoding": "gzip"})
    assert "content-encoding" not in answer.headers


@pytest.mark.parametrize("address", ["", "/", "/dead-letters/17", "/theme.js", "/assets/index-CBXf7dUE.js", "/assets/none.js"])
async def test_head_returns_the_headers_of_get(client: httpx.AsyncClient, address: str) -> None:
    got, head = [await client.request(method, f"/a/b/outbox/ui{address}") for method in ("GET", "HEAD")]
    assert (head.status_code, head.content) == (got.status_code, b"")
    assert dict(head.headers) == dict(got.headers)


@pytest.mark.parametrize(
    "address",
    [
        "../secret.txt",
        "assets/../../secret.txt",
        "assets/..%2f..%2fsecret.txt",
        "%2e%2e/secret.txt",
        "%2e%2e%2fsecret.txt",
        "..%5csecret.txt",
        "assets/%00",
        "theme.js%00",
        "%2fetc%2fpasswd",
        "//etc/passwd",
        "assets//index-CBXf7dUE.js",
        "assets/",
        "assets",
        "assets/gone-12345678.js",
        "assets/index-CBXf7dUE.js/",
        "assets/index-CBXf7dUE.js.gz",
        "index.html",
        "escape/secret.txt",
        ".vite/manifest.json",
        "./.vite/manifest.json",
        "build.json",
        "%ff%fe",
        "a" * 5000,
    ],
)
async def test_no_other_file_is_served(folder: Path, address: str) -> None:
    answer = await as_it_is(folder, address)
    assert answer.status_code in (200, 404)
    assert answer.text.startswith("<!doctype html><base") or answer.text == "There is no such file.\n"
    assert answer.status_code == 200 or answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["cache-control"] == "no-store"
    assert has_our_headers(answer)


async def as_it_is(folder: Path, address: str) -> httpx.Response:
    """Asks without taking dots out of the address, as clients do."""
    raw, sent = f"/a/b/outbox/ui/{address}", list[Message]()
    scope = {
        "type": "http",
        "method": "GET",
        "path": unquote(raw),
        "raw_path": raw.encode(),
        "headers": [],
        "query_string": b"",
    }

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        sent.append(message)

    await host(folder)(scope, receive, send)
    body = b"".join(message.get("body", b"") for message in sent)
    return httpx.Response(sent[0]["status"], headers=sent[0]["headers"], content=body)


@pytest.mark.parametrize("address", ["assets/gone-12345678.js", ".vite/manifest.json", "assets/..%2f..%2fsecret.txt"])
async def test_a_missing_file_is_not_found(client: httpx.AsyncClient, address: str) -> None:
    assert (await client.get(f"/a/b/outbox/ui/{address}")).status_code == 404


@pytest.mark.parametrize("address", ["", "/", "/x", "/theme.js", "/assets/index-CBXf7dUE.js", "/assets/none"])
async def test_every_response_has_the_security_headers(client: httpx.AsyncClient, address: str) -> None:
    assert has_our_headers(await client.get(f"/a/b/outbox/ui{address}"))


def has_our_headers(answer: httpx.Response) -> bool:
    policy = dict(part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["form-action"] == "'none'"
    assert not any("unsafe" in value or "*" in value for value in policy.values())
    return SECURITY.items() <= answer.headers.items()


async def test_without_a_build_the_page_explains_what_is_missing(tmp_path: Path) -> None:
    async with client_of(host(tmp_path / "nothing")) as client:
        for address in ("", "dead-letters/17", "assets/index-CBXf7dUE.js"):
            answer = await client.get(f"/a/b/outbox/ui/{address}")
            assert answer.status_code == 404
            assert "make dashboard" in answer.text
            assert answer.headers["cache-control"] == "no-store"
            assert has_our_headers(answer)


async def test_a_new_build_is_served_without_a_restart(tmp_path: Path, folder: Path) -> None:
    async with client_of(host(folder)) as client:
        assert (await client.get("/a/b/outbox/ui/assets/index-NEW00000.js")).status_code == 404
        write(tmp_path / "newer", {"index.html": "newer", "assets/index-NEW00000.js": "new()"})
        folder.rename(tmp_path / "older")
        assert (await client.get("/a/b/outbox/ui/")).status_code == 404
        (tmp_path / "newer").rename(folder)
        assert (await client.get("/a/b/outbox/ui/")).text == "newer"
        assert (await client.get("/a/b/outbox/ui/assets/index-NEW00000.js")).text == "new()"
        assert (await client.get("/a/b/outbox/ui/assets/index-CBXf7dUE.js")).status_code == 404


async def test_responses_of_the_host_are_unchanged(folder: Path) -> None:
    async with client_of(host(folder)) as client:
        for path in ("/nowhere", "/a/b/outbox/uix", "/a/b/outbox/nothing"):
            answer = await client.get(path)
            assert (answer.status_code, answer.json()) == (404, {"detail": "Not Found"})
            assert "content-security-policy" not in answer.headers
        assert (await client.post("/a/b/outbox/ui/x")).status_code == 405
        assert list((await client.get("/openapi.json")).json()["paths"]) == []
        assert "content-security-policy" not in (await client.get("/docs")).headers


async def test_the_admin_router_serves_the_dashboard_without_authentication() -> None:
    app = FastAPI()
    app.include_router(admin_router(Admin("postgresql://user@localhost/none")), prefix="/outbox")
    async with client_of(app) as client:
        answer = await client.get("/outbox/ui/")
        assert answer.status_code == (200 if is_built() else 404)
        assert answer.headers["content-type"].startswith("text/html")


@pytest.mark.parametrize(("login_url", "problem"), [("javascript:alert(1)", "must begin with"), ("login", "must begin with")])
def test_the_hosts_login_url_must_be_a_url(login_url: str, problem: str) -> None:
    admin = Admin("postgresql://user@localhost/none")
    with pytest.raises(ConfigurationError, match=problem):
        admin_router(admin, authenticate=lambda: None, login_url=login_url)
    with pytest.raises(ConfigurationError, match="authenticate"):
        admin_router(admin, login_url="/login")


async def test_the_page_contains_the_hosts_login_url(folder: Path) -> None:
    app = FastAPI()
    app.include_router(ui_routes(folder, host_login='/login?a="b"&c'))
    async with client_of(app) as client:
        text = (await client.get("/ui/")).text
    assert '<meta name="outbox-host-login" content="/login?a=&quot;b&quot;&amp;c" />' in text
