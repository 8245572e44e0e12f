"""A fake OpenID Connect provider."""

import time
from typing import Any
from urllib.parse import parse_qs, urlencode

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, RedirectResponse
from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT = "outbox-admin"


class FakeProvider:
    """Implements a provider without a login page. Tests change its attributes to simulate faults."""

    def __init__(self) -> None:
        self.key = RSAKey.generate_key(2048, {"kid": "one"})
        self.published = self.key
        self.further_keys: list[dict[str, Any]] = []
        self.issuer = ""
        self.claims: dict[str, Any] = {"email": "ada@shop.example", "groups": ["people", "sre"]}
        self.asked: dict[str, Any] = {}
        self.token: dict[str, Any] = {}
        self.status = 200
        self.requests: list[str] = []
        self.app = FastAPI()
        self.app.get("/.well-known/openid-configuration")(self.configuration)
        self.app.get("/keys")(self.keys)
        self.app.post("/token")(self.exchange)
        self.app.get("/authorize")(self.authorize)

    async def configuration(self) -> dict[str, str]:
        """The discovery document."""
        self.requests.append("configuration")
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
        }

    async def keys(self) -> dict[str, Any]:
        """The public keys."""
        self.requests.append("keys")
        return {"keys": [*self.further_keys, self.published.as_dict(private=False)]}

    async def exchange(self, request: Request) -> JSONResponse:
        """Exchanges a code for an id token."""
        form = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
        self.token = {**form, "authorization": request.headers.get("authorization")}
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": CLIENT,
            "sub": "u-1",
            "iat": now,
            "exp": now + 300,
            "nonce": self.asked["nonce"],
            **self.claims,
        }
        token = jwt.encode({"alg": "RS256", "kid": self.key.kid}, {k: v for k, v in claims.items() if v is not None}, self.key)
        return JSONResponse({"id_token": token, "access_token": "x", "token_type": "Bearer"}, status_code=self.status)

    async def authorize(self, request: Request) -> RedirectResponse:
        """Redirects back with a code, as for a user who is already logged in."""
        self.asked = dict(request.query_params)
        where = f"{self.asked['redirect_uri']}?{urlencode({'code': 'c', 'state': self.asked['state']})}"
        return RedirectResponse(where, status_code=302)
