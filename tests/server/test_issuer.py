"""An outside authorization server: its tokens, its keys, and what is said to whoever has none."""

import base64
import hashlib
import hmac
import json
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
import jwt
import pytest
from joserfc.errors import SecurityWarning
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)

from banking_server.server import issuer as issuer_module
from banking_server.server.build import utc_now
from banking_server.server.http import http_app
from banking_server.server.issuer import FRESH_SECONDS, REFETCH_SECONDS, PublishedKeys
from banking_server.server.settings import Settings, load_settings
from banking_server.server.tokens import MOST_CHARACTERS, Tokens, load_keys

from ..kit.authorization_server import (
    CLIENT_ID,
    NO_TOKENS,
    REDIRECT_URI,
    AuthorizationServer,
    authorization_server,
    send,
)
from ..kit.servers import free_port, headers_of, tool_call
from .test_load import Seconds

pytestmark = pytest.mark.anyio

RESOURCE = "https://bank.example/mcp"
METADATA = "https://bank.example/.well-known/oauth-protected-resource/mcp"
PATIENCE = 20

RSA = RSAKey.generate_key(2048, {"kid": "rsa", "use": "sig"})
EC = ECKey.generate_key("P-256", {"kid": "ec", "use": "sig"})
WIDE = ECKey.generate_key("P-384", {"kid": "wide"})
ED = OKPKey.generate_key("Ed25519", {"kid": "ed", "alg": "EdDSA"})
PSS = RSAKey.generate_key(2048, {"kid": "pss", "alg": "PS256"})
FOR_SECRETS = ECKey.generate_key("P-256", {"kid": "enc", "use": "enc"})
with pytest.warns(SecurityWarning):
    SHORT = RSAKey.generate_key(1024, {"kid": "short"})
SHARED = OctKey.generate_key(256, {"kid": "shared"})
CALLED_HS = ECKey.generate_key("P-256", {"kid": "hs", "alg": "HS256"})
STOLEN = RSAKey.generate_key(2048, {"kid": "rsa"})
"""Somebody else's, under the name of the first."""


@pytest.fixture(scope="module")
def issuer() -> Iterator[AuthorizationServer]:
    published = [EC, RSA, WIDE, ED, PSS, SHORT, FOR_SECRETS, SHARED, CALLED_HS]
    with authorization_server(RESOURCE, published) as server:
        yield server


def fresh() -> ECKey:
    """Return a key with a name of its own."""
    return ECKey.generate_key("P-256", auto_kid=True)


@dataclass
class Bank:
    """A bank's HTTP application, in this process."""

    http: httpx2.AsyncClient
    seconds: Seconds
    settings: Settings
    issuer: str

    async def call(self, token: str | None, tool: str = "list_accounts") -> httpx2.Response:
        return await self.http.post(RESOURCE, json=tool_call(tool), headers=headers_of(token))

    async def status(self, token: str | None) -> int:
        return (await self.call(token)).status_code

    def signed(self, key: Any = EC, algorithm: str = "ES256", **changes: Any) -> str:
        """Return a good token, changed: by claims, or by `header`; None leaves one out."""
        header = {"kid": key.kid, "typ": "at+jwt", **changes.pop("header", {})}
        now = int(time.time())
        good = {
            "iss": self.issuer,
            "sub": "CUST001",
            "aud": RESOURCE,
            "iat": now,
            "exp": now + 300,
            "client_id": CLIENT_ID,
            "jti": "an id",
            "scope": "bank:read bank:transfer",
        }
        claims = {name: value for name, value in {**good, **changes}.items() if value is not None}
        headers = {name: value for name, value in header.items() if value is not None}
        if "typ" not in headers:
            headers["typ"] = ""  # PyJWT leaves it out.
        return jwt.encode(claims, key.private_key, algorithm, headers=headers)


@asynccontextmanager
async def bank_of(folder: Path, origin: str, **options: Any) -> AsyncIterator[Bank]:
    settings = load_settings(
        database=folder / "bank.db",
        resource_url=RESOURCE,
        issuer=origin,
        jwks_url=options.pop("jwks_url", f"{origin}/jwks"),
        calls_per_second=0,
        **options,
    )
    seconds = Seconds()
    app = http_app(settings, monotonic=seconds)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app)) as http,
    ):
        yield Bank(http, seconds, settings, origin)


# --- a client that knows nothing but the bank's URL -----------------------------------------------


class Stored:
    """What a client of the SDK knows in advance: how it is registered."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull:
        return OAuthClientInformationFull(
            client_id=CLIENT_ID, redirect_uris=[REDIRECT_URI], token_endpoint_auth_method="none"
        )

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        raise AssertionError("it is registered already")


@pytest.mark.needs_program(NO_TOKENS)
async def test_a_standard_client_finds_its_way_to_a_token(
    tmp_path: Path, issuer: AuthorizationServer
) -> None:
    came_back: dict[str, list[str]] = {}

    async def visit(url: str) -> None:
        async with httpx2.AsyncClient() as browser:
            back = (await browser.get(url)).headers["Location"]
        came_back.update(parse_qs(urlsplit(back).query))

    async def returned() -> AuthorizationCodeResult:
        return AuthorizationCodeResult(code=came_back["code"][0], state=came_back["state"][0])

    stored = Stored()
    metadata = OAuthClientMetadata(redirect_uris=[REDIRECT_URI], token_endpoint_auth_method="none")
    async with bank_of(tmp_path, issuer.origin) as bank:
        http = httpx2.AsyncClient(
            auth=OAuthClientProvider(RESOURCE, metadata, stored, visit, returned),
            transport=bank.http._transport,
            mounts={issuer.origin: httpx2.AsyncHTTPTransport()},
        )
        async with Client(streamable_http_client(RESOURCE, http_client=http)) as client:
            result = await client.call_tool("list_accounts", {})
    assert "acc_checking_001" in str(result.content)
    assert stored.tokens is not None
    assert stored.tokens.scope == "bank:read bank:transfer"
    assert jwt.get_unverified_header(stored.tokens.access_token)["typ"] == "at+jwt"


async def test_the_metadata_names_the_issuer(tmp_path: Path, issuer: AuthorizationServer) -> None:
    async with bank_of(tmp_path, issuer.origin) as bank:
        answer = await bank.http.get(METADATA, headers={"Origin": "https://bank.example"})
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        assert answer.json() == {
            "resource": RESOURCE,
            "authorization_servers": [issuer.origin],
            "scopes_supported": ["bank:read", "bank:transfer"],
            "bearer_methods_supported": ["header"],
        }


# --- which tokens are good ------------------------------------------------------------------------

Made = Callable[[Bank], str]


def with_(*key: Any, **changes: Any) -> Made:
    return lambda bank: bank.signed(*key, **changes)


GOOD: dict[str, Made] = {
    "ES256": with_(),
    "RS256": with_(RSA, "RS256"),
    "RS512": with_(RSA, "RS512"),
    "PS256 with a key for RSA": with_(RSA, "PS256"),
    "PS256": with_(PSS, "PS256"),
    "ES384": with_(WIDE, "ES384"),
    "EdDSA": with_(ED, "EdDSA"),
    "a plain JWT": with_(header={"typ": "JWT"}),
    "a type in full": with_(header={"typ": "application/AT+jwt"}),
    "no type": with_(header={"typ": None}),
    "no key id": with_(RSA, "PS384", header={"kid": None}),
    "several audiences": with_(aud=["https://other.example", RESOURCE]),
    "scp as a list": with_(scope=None, scp=["bank:read", 5]),
    "scp as a string": with_(scope=None, scp="bank:transfer bank:read"),
    "a clock a little ahead": lambda bank: bank.signed(iat=time.time() + 5, nbf=time.time() + 5),
    "no client": with_(client_id=None),
}


def encoded(part: bytes | dict[str, Any]) -> str:
    content = part if isinstance(part, bytes) else json.dumps(part).encode()
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def by_hand(bank: Bank, header: Any, secret: bytes | None = None, payload: Any = None) -> str:
    """Return a token that no library would make; with a secret, signed as HS256 is."""
    claims = jwt.decode(bank.signed(), options={"verify_signature": False})
    signed = f"{encoded(header)}.{encoded(claims if payload is None else payload)}"
    digest = b"" if secret is None else hmac.digest(secret, signed.encode(), hashlib.sha256)
    return f"{signed}.{encoded(digest)}"


def own(bank: Bank, **changes: Any) -> str:
    """Return a token of the server's own, for a trial."""
    keys = load_keys(bank.settings)
    tokens = Tokens(keys.tokens, RESOURCE, **changes)
    return tokens.mint("CUST001", ["bank:read"], now=utc_now(), lifetime=MINUTES)


def tampered(bank: Bank) -> str:
    header, payload, signature = bank.signed().split(".")
    claims = json.loads(base64.urlsafe_b64decode(payload + "=="))
    return f"{header}.{encoded({**claims, 'sub': 'CUST002'})}.{signature}"


MINUTES = timedelta(minutes=5)
HS = {"alg": "HS256", "typ": "JWT"}

BAD: dict[str, Made] = {
    "nothing": lambda bank: "",
    "garbage": lambda bank: "garbage",
    "dots": lambda bank: "a.b.c",
    "five parts": lambda bank: "eyJhbGciOiJkaXIifQ.a.b.c.d",
    "too long": with_(padding="x" * MOST_CHARACTERS),
    "deep": lambda bank: by_hand(bank, b"[" * 5000),
    "a header that is no object": lambda bank: by_hand(bank, b"[]"),
    "claims that are no object": lambda bank: jwt.PyJWS().encode(b"[]", EC.private_key, "ES256"),
    # The algorithm.
    "none": lambda bank: by_hand(bank, {"alg": "none"}),
    "None": lambda bank: by_hand(bank, {"alg": "None", "kid": "ec"}),
    "no algorithm": lambda bank: by_hand(bank, {"kid": "ec"}),
    "HS256 with the public key": lambda bank: by_hand(
        bank, {**HS, "kid": "rsa"}, RSA.as_pem(private=False)
    ),
    "HS256 with the public key in DER": lambda bank: by_hand(
        bank, {**HS, "kid": "rsa"}, RSA.as_der(private=False)
    ),
    "HS256 with a shared key that is published": lambda bank: by_hand(
        bank, {**HS, "kid": "shared"}, SHARED.raw_value
    ),
    "HS256 with a key that is published for it": lambda bank: by_hand(
        bank, {**HS, "kid": "hs"}, CALLED_HS.as_pem(private=False)
    ),
    "HS256 with nothing": lambda bank: by_hand(bank, HS, b""),
    "a key that calls itself HS256": with_(CALLED_HS, "ES256"),
    "a key that is too short": with_(SHORT, "RS256"),
    "one that its key is not for": with_(PSS, "RS256"),
    "RS256 by the name of another key": with_(RSA, "RS256", header={"kid": "ec"}),
    # The key.
    "a trial's": own,
    "a trial's, on any port": lambda bank: own(bank, local=True),
    "a trial's key, the issuer's claims": lambda bank: by_hand(
        bank, HS, load_keys(bank.settings).tokens
    ),
    "somebody else's key": with_(STOLEN, "RS256"),
    "somebody else's key without its name": with_(STOLEN, "RS256", header={"kid": None}),
    "an unknown key": with_(EC, header={"kid": "nobody's"}),
    "a name that is none": lambda bank: by_hand(bank, {"alg": "ES256", "kid": 5}),
    "a key for secrets": with_(FOR_SECRETS),
    "a key in the token": with_(
        STOLEN, "RS256", header={"jwk": STOLEN.as_dict(private=False), "kid": "new"}
    ),
    "a key elsewhere": with_(
        STOLEN, "RS256", header={"jku": "https://evil.example/jwks", "kid": "new"}
    ),
    "no signature": lambda bank: bank.signed().rpartition(".")[0] + ".",
    "half a signature": lambda bank: bank.signed()[:-40],
    "other claims": tampered,
    # The header.
    "another kind of token": with_(header={"typ": "logout+jwt"}),
    "a proof": with_(header={"typ": "dpop+jwt"}),
    "a type that is none": lambda bank: by_hand(bank, {"alg": "ES256", "typ": ["JWT"]}),
    "what must be understood": with_(header={"crit": ["exp"], "exp": 1}),
    "no payload": with_(header={"b64": False, "crit": ["b64"]}),
    # The claims.
    "expired": lambda bank: bank.signed(exp=int(time.time()) - 1),
    "no expiry": with_(exp=None),
    "an expiry that is none": with_(exp="tomorrow"),
    "an endless expiry": with_(exp=float("inf")),
    "not yet": lambda bank: bank.signed(nbf=int(time.time()) + 60),
    "issued in the future": lambda bank: bank.signed(iat=int(time.time()) + 60),
    "no issuer": with_(iss=None),
    "another issuer": with_(iss="https://login.evil.example"),
    "an issuer with a slash": lambda bank: bank.signed(iss=bank.issuer + "/"),
    "the server's own issuer": with_(iss="https://bank.example"),
    "no audience": with_(aud=None),
    "an empty audience": with_(aud=[]),
    "an audience that is none": with_(aud={RESOURCE: 1}),
    "another resource": with_(aud="https://bank.example/other"),
    "the client": with_(aud=CLIENT_ID),
    "a longer resource": with_(aud=RESOURCE + "/more"),
    "no subject": with_(sub=None),
    "a number as subject": lambda bank: jwt.PyJWS().encode(
        json.dumps({"iss": bank.issuer, "aud": RESOURCE, "exp": 9e9, "sub": 1}).encode(),
        EC.private_key,
        "ES256",
    ),
    "an empty subject": with_(sub=""),
    "an unknown customer": with_(sub="CUST999"),
    "a strange customer": with_(sub="'; --\0"),
    "half a character": with_(sub="\ud800"),
    "bound to a proof": with_(cnf={"jkt": "a thumbprint"}),
}

NO_SCOPE: dict[str, Any] = {
    "none": {"scope": None},
    "empty": {"scope": ""},
    "transfer only": {"scope": "bank:transfer"},
    "another": {"scope": "bank:everything"},
    "in capitals": {"scope": "BANK:READ"},
    "commas": {"scope": "bank:read,bank:transfer"},
    "a number": {"scope": 5},
    "an object": {"scope": {"bank:read": True}},
    "both, and the first one counts": {"scope": "openid", "scp": ["bank:read"]},
}


@pytest.mark.filterwarnings("ignore::jwt.InsecureKeyLengthWarning")
async def test_each_token_is_good_or_it_is_not(
    tmp_path: Path, issuer: AuthorizationServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "banking_server")
    where = f'scope="bank:read bank:transfer", resource_metadata="{METADATA}"'
    invalid = f'Bearer error="invalid_token", error_description="Authentication required", {where}'
    async with bank_of(tmp_path, issuer.origin) as bank:
        answers = {name: await bank.call(made(bank)) for name, made in GOOD.items()}
        assert {name: answer.status_code for name, answer in answers.items()} == dict.fromkeys(
            GOOD, 200
        )
        assert all("acc_checking_001" in answer.text for answer in answers.values())

        sent = {name: made(bank) for name, made in BAD.items()}
        answers = {name: await bank.call(token) for name, token in sent.items()}
        assert {name: answer.status_code for name, answer in answers.items()} == dict.fromkeys(
            BAD, 401
        )
        for why in ("(typ) is none of", "(cnf)"):
            assert why in caplog.text
        # Not a word about what is wrong with it.
        assert len({answer.content for answer in answers.values()}) == 1
        assert {answer.headers["WWW-Authenticate"] for answer in answers.values()} == {invalid}

        answers = {name: await bank.call(bank.signed(**one)) for name, one in NO_SCOPE.items()}
        assert {name: answer.status_code for name, answer in answers.items()} == dict.fromkeys(
            NO_SCOPE, 403
        )
        for answer in answers.values():
            assert answer.headers["WWW-Authenticate"] == (
                'Bearer error="insufficient_scope", '
                f'error_description="Required scope: bank:read", {where}'
            )

        token = bank.signed(scope="bank:transfer")
        for method in ("GET", "DELETE"):
            answer = await bank.http.request(method, RESOURCE, headers=headers_of(token))
            assert (answer.status_code, where in answer.headers["WWW-Authenticate"]) == (403, True)

        nobody = await bank.call(None)
        assert (nobody.status_code, nobody.headers["WWW-Authenticate"]) == (401, f"Bearer {where}")
    assert not [token for token in sent.values() if token and token in caplog.text]
    assert "Traceback" not in caplog.text


async def test_another_claim_may_name_the_customer(
    tmp_path: Path, issuer: AuthorizationServer
) -> None:
    async with bank_of(tmp_path, issuer.origin, customer_claim="bank_customer") as bank:
        assert await bank.status(bank.signed(sub="8a6e", bank_customer="CUST001")) == 200
        for claim in (None, "", "CUST999", ["CUST001"], 1):
            assert await bank.status(bank.signed(sub="CUST001", bank_customer=claim)) == 401


# --- the keys -------------------------------------------------------------------------------------


async def test_keys_are_fetched_once_and_anew_for_a_new_name(tmp_path: Path) -> None:
    old, new, newest = fresh(), fresh(), fresh()
    with authorization_server(RESOURCE, [old]) as issuer:
        async with bank_of(tmp_path, issuer.origin) as bank:
            with anyio.fail_after(PATIENCE):
                while not issuer.fetched:  # Before anybody has come.
                    await anyio.sleep(0.005)
            sign = partial(bank.signed, jti=None)
            assert [await bank.status(sign(old, n=n)) for n in range(5)] == [200] * 5
            assert issuer.fetched == 1

            issuer.keys[:] = [new]
            assert await bank.status(sign(new)) == 200
            assert issuer.fetched == 2
            assert await bank.status(sign(old, n=9)) == 401, "withdrawn"

            # Whoever makes up names has them fetched no more than once in a while.
            issuer.keys[:] = [newest]
            async with anyio.create_task_group() as group:
                for number in range(50):
                    group.start_soon(bank.call, sign(old, header={"kid": f"made up {number}"}))
            assert await bank.status(sign(newest)) == 401
            assert issuer.fetched == 2
            bank.seconds.now += REFETCH_SECONDS
            answers: list[int] = []

            async def ask(number: int) -> None:
                answers.append(await bank.status(sign(newest, n=number)))

            async with anyio.create_task_group() as group:
                for number in range(20):
                    group.start_soon(bank.call, sign(old, header={"kid": f"made up {number}"}))
                    group.start_soon(ask, number)
            assert answers == [200] * 20
            assert issuer.fetched == 3


def elsewhere(handler: BaseHTTPRequestHandler) -> None:
    send(handler, 302, "", [("Location", f"http://{handler.headers['Host']}/evil")])


def compressed(handler: BaseHTTPRequestHandler) -> None:
    assert handler.headers["Accept-Encoding"] == "identity"
    send(handler, 200, "\x1f\x8b", [("Content-Encoding", "gzip")])


OUTAGES: dict[str, tuple[Callable[[BaseHTTPRequestHandler], None], str]] = {
    "an error": (lambda handler: send(handler, 500, "no"), "HTTP 500"),
    "a redirect": (elsewhere, "HTTP 302"),
    "hanging up": (lambda handler: handler.connection.close(), "RemoteProtocolError|ReadError"),
    "no JSON": (lambda handler: send(handler, 200, "<html>"), "no JWK Set"),
    "a number": (lambda handler: send(handler, 200, "5"), "no JWK Set"),
    "no keys": (lambda handler: send(handler, 200, {"keys": []}), "no key that could"),
    "keys that are none": (
        lambda handler: send(handler, 200, {"keys": [5, {}, {"kty": "RSA", "n": 5}]}),
        "no key that could",
    ),
    "keys that are no list": (lambda handler: send(handler, 200, {"keys": 5}), "no JWK Set"),
    "depth": (lambda handler: send(handler, 200, "[" * 60_000), "no JWK Set"),
    "no end": (lambda handler: send(handler, 200, "x" * 600_000), "more than 131072 bytes"),
    "compressed": (compressed, "no JWK Set"),
}


async def test_an_outage_is_survived_with_the_keys_that_are_there(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    key = fresh()
    with authorization_server(RESOURCE, [key]) as issuer:
        async with bank_of(tmp_path, issuer.origin) as bank:
            assert await bank.status(bank.signed(key)) == 200
            for kind, (answer, reason) in OUTAGES.items():
                issuer.answer = answer
                caplog.clear()
                fetched = issuer.fetched
                unknown = bank.signed(key, header={"kid": kind})
                assert [await bank.status(unknown) for _ in range(3)] == [401] * 3, kind
                assert issuer.fetched == fetched + 1, kind
                assert await bank.status(bank.signed(key, outage=kind)) == 200, kind
                (line,) = [record for record in caplog.records if record.name.endswith("issuer")]
                shown = line.getMessage()
                assert any(one in shown for one in reason.split("|")), shown
                assert shown.endswith("; the last ones stay in use")
                assert line.exc_info is None
                assert issuer.jwks_url in shown
                bank.seconds.now += REFETCH_SECONDS
            issuer.answer = None
            issuer.keys[:] = [later := fresh()]
            assert await bank.status(bank.signed(later)) == 200, "it is over"
            assert await bank.status(bank.signed(key, outage="over")) == 401


async def test_whoever_has_a_known_key_waits_for_no_fetch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, hanging, released = fresh(), threading.Event(), threading.Event()
    waited: list[bool] = []

    def hang(handler: BaseHTTPRequestHandler) -> None:
        hanging.set()
        waited.append(released.wait(PATIENCE))

    with authorization_server(RESOURCE, [key]) as issuer:
        async with bank_of(tmp_path, issuer.origin) as bank:
            assert await bank.status(bank.signed(key)) == 200
            issuer.answer = hang
            statuses: list[int] = []

            async def unknown() -> None:
                statuses.append(await bank.status(bank.signed(key, header={"kid": "new"})))

            async with anyio.create_task_group() as group:
                group.start_soon(unknown)
                await anyio.to_thread.run_sync(hanging.wait, PATIENCE)
                assert await bank.status(bank.signed(key, n=2)) == 200
                assert statuses == []
                released.set()
            assert statuses == [401]
            # And there is an end to it.
            monkeypatch.setattr(issuer_module, "FETCH_SECONDS", 0.05)
            released.clear()
            bank.seconds.now += REFETCH_SECONDS
            assert await bank.status(bank.signed(key, header={"kid": "new"})) == 401
            assert waited == [True], "the second one still hangs"
            released.set()


async def test_before_there_are_keys_nobody_is_told_that_their_token_is_bad(
    tmp_path: Path,
) -> None:
    key, port = fresh(), free_port()
    async with bank_of(tmp_path, f"http://127.0.0.1:{port}") as bank:
        answer = await bank.call(bank.signed(key))
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, str(REFETCH_SECONDS))
        assert "WWW-Authenticate" not in answer.headers
        assert answer.json()["error"]["message"] == (
            "Access tokens cannot be checked at the moment. Please try again later."
        )
        # What needs no key is told as ever.
        assert [await bank.status(token) for token in (None, "garbage")] == [401, 401]
        assert (await bank.http.get(METADATA)).status_code == 200
        with authorization_server(RESOURCE, [key], port=port):
            bank.seconds.now += REFETCH_SECONDS
            assert await bank.status(bank.signed(key)) == 200
        assert await bank.status(bank.signed(key, n=2)) == 200, "it may go again"


async def test_keys_are_fetched_now_and_then_so_that_one_that_is_withdrawn_goes() -> None:
    slept: list[float] = []
    old, new = fresh(), fresh()

    async def sleep(seconds: float) -> None:
        """Between fetches, no time passes; but something happens to the issuer."""
        slept.append(seconds)
        match len(slept):
            case 1:
                issuer.keys[:] = [new]
            case 2:
                issuer.answer = OUTAGES["an error"][0]
            case 3:
                group.cancel_scope.cancel()
                await anyio.lowlevel.checkpoint()

    with authorization_server(RESOURCE, [old]) as issuer:
        keys = PublishedKeys(issuer.jwks_url, sleep=sleep)
        async with anyio.create_task_group() as group:
            group.start_soon(keys.keep_fresh)
    assert slept == [FRESH_SECONDS, FRESH_SECONDS, REFETCH_SECONDS]
    assert [key.key_id for key in await keys.fitting(None)] == [new.kid]
