"""Cross-site protection: detects requests that a page of another site made the browser send."""

from urllib.parse import urlsplit

from fastapi import Request

_USUAL_PORTS = {"http": 80, "https": 443}


def cross_site(request: Request) -> str | None:
    """Why the request may come from another site; None if it cannot.

    Browsers say of a page of the same origin `Sec-Fetch-Site: same-origin`, and of somebody who typed an address `none`. Over
    plain http they say nothing there, but name the `Origin`, which must be the `Host`. What has neither and no cookie comes
    from no browser: a page can make one send cookies, but no token.
    """
    if (reason := sent_by_another_site(request)) is not None:
        return reason
    says_which = "sec-fetch-site" in request.headers or "origin" in request.headers
    if "cookie" in request.headers and not says_which:
        return "with a cookie, the header Origin or Sec-Fetch-Site must say which site asks"
    return None


def sent_by_another_site(request: Request) -> str | None:
    """Why the request does come from another site, by what the browser says; None also if it says nothing."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None:
        return None if site in ("same-origin", "none") else f"Sec-Fetch-Site is {site[:50]!r}"
    if origin is not None:
        return None if _is_host(origin, request.headers.get("host", "")) else f"the Origin {origin[:200]!r} is not the Host"
    return None


def _is_host(origin: str, host: str) -> bool:
    """Whether both are the same place; a port may be left out where it is the usual one of the origin's scheme."""
    try:
        theirs = urlsplit(origin)
        ours = urlsplit(f"{theirs.scheme}://{host}")
        usual = _USUAL_PORTS[theirs.scheme]
        return bool(host) and (theirs.hostname, theirs.port or usual) == (ours.hostname, ours.port or usual)
    except (ValueError, KeyError):
        return False
