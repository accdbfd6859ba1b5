"""An outside authorization server: its tokens, its keys, and what is said to whoever has none."""

import base64
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import jwt
import pytest
from starlette.responses import JSONResponse, RedirectResponse, Response

from banking_server.server.keys import load_keys

from ..kit.authorization_server import (
    AuthorizationServer,
    Key,
    authorization_server,
    edwards,
    elliptic,
    rsa_key,
)
from ..kit.bank import copy_of
from ..kit.servers import free_port
from .in_memory import LOOK, Bank, bank_in_memory

pytestmark = pytest.mark.anyio

RESOURCE = "https://bank.example/mcp"
METADATA = "https://bank.example/.well-known/oauth-protected-resource/mcp"
WHERE = f'resource_metadata="{METADATA}"'

EC = elliptic("ec", use="sig")
RSA = rsa_key("rsa")
ED = edwards("ed", alg="EdDSA")
SHORT = rsa_key("short", bits=1024)
FOR_SECRETS = elliptic("enc", use="enc")
CALLED_HS = elliptic("hs", alg="HS256")
STOLEN = elliptic("ec")
"""Somebody else's, under the name of another."""
SECRET = b"a key for HS256 that the issuer has published"
SHARED = {"kty": "oct", "kid": "shared", "k": base64.urlsafe_b64encode(SECRET).decode().strip("=")}


@pytest.fixture(scope="module")
def issuer() -> Iterator[AuthorizationServer]:
    published = [EC, RSA, ED, SHORT, FOR_SECRETS, CALLED_HS, SHARED]
    with authorization_server(RESOURCE, published) as server:
        yield server


@asynccontextmanager
async def bank_of(database: Path, origin: str, **options: Any) -> AsyncIterator[Bank]:
    where = {"issuer": origin, "jwks_url": f"{origin}/jwks", "resource_url": RESOURCE}
    async with bank_in_memory(database, **where, **options) as bank:
        yield bank


@pytest.fixture(scope="module")
async def bank(
    issuer: AuthorizationServer,
    filled: Path,
    tmp_path_factory: pytest.TempPathFactory,
    anyio_backend: str,
) -> Any:
    folder = tmp_path_factory.mktemp("bank")
    async with bank_of(copy_of(filled, folder), issuer.origin) as bank:
        yield bank


# --- what a client without a token finds out ------------------------------------------------------


async def test_the_metadata_name_the_issuer_to_any_page(
    bank: Bank, issuer: AuthorizationServer
) -> None:
    metadata = await bank.http.get(METADATA, headers={"Origin": "https://bank.example"})
    assert metadata.headers["Access-Control-Allow-Origin"] == "*"
    assert metadata.json()["authorization_servers"] == [issuer.origin]
    assert metadata.json()["resource"] == RESOURCE


# --- which tokens are good ------------------------------------------------------------------------


async def test_a_good_token(bank: Bank, issuer: AuthorizationServer) -> None:
    good = {
        "ES256": EC.sign(issuer.claims()),
        "EdDSA": ED.sign(issuer.claims()),
        "no type": EC.sign(issuer.claims(), typ=None),
        "RS256": RSA.sign(issuer.claims()),
        "scp as a list": EC.sign(issuer.claims(scope=None, scp=["bank:read", 5])),
    }
    for name, token in good.items():
        answer = await bank.send(LOOK, token)
        assert (answer.status_code, "acc_checking_001" in answer.text) == (200, True), name


@pytest.mark.filterwarnings("ignore::jwt.InsecureKeyLengthWarning")
async def test_a_bad_token(
    bank: Bank, issuer: AuthorizationServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Not a word about what is wrong with it; the log has that, and not the token."""
    caplog.set_level(logging.DEBUG, "banking_server")
    claims, own = issuer.claims(), load_keys(bank.settings).tokens
    bad = {
        # The algorithm, and the key.
        "none": jwt.encode(claims, None, "none"),
        "a shared key that is published": jwt.encode(claims, SECRET, "HS256", {"kid": "shared"}),
        "a key that calls itself HS256": CALLED_HS.sign(claims),
        "a trial's key, the issuer's claims": jwt.encode(claims, own, "HS256"),
        "a key that is too short": SHORT.sign(claims),
        "somebody else's key": STOLEN.sign(claims),
        "a key for secrets": FOR_SECRETS.sign(claims),
        "no key id": RSA.sign(claims, kid=None),
        "a key in the token": STOLEN.sign(claims, jwk=STOLEN.jwk, kid="new"),
        # The header.
        "another kind of token": EC.sign(claims, typ="logout+jwt"),
        "what must be understood": EC.sign(claims, crit=["exp"], exp=1),
        # The claims; `test_tokens.py` has more.
        "issued in the future": EC.sign(issuer.claims(iat=9e9)),
        "bound to a proof": EC.sign(issuer.claims(cnf={"jkt": "a thumbprint"})),
    }
    refused = 'error="invalid_token", error_description="Authentication required"'
    for name, token in bad.items():
        caplog.clear()
        answer = await bank.send(LOOK, token)
        assert answer.status_code == 401, name
        assert answer.headers["WWW-Authenticate"] == f"Bearer {refused}, {WHERE}"
        assert answer.json()["error_description"] == "Authentication required"
        assert "Refused a token: " in caplog.text, name
        assert token not in caplog.text
        assert "Traceback" not in caplog.text


async def test_another_claim_may_name_the_customer(full: Path, issuer: AuthorizationServer) -> None:
    async with bank_of(full, issuer.origin, customer_claim="bank_customer") as bank:
        for claim, status in (("CUST001", 200), (None, 401), ("CUST999", 401), (["CUST001"], 401)):
            claims = issuer.claims(bank_customer=claim)
            assert (await bank.send(LOOK, EC.sign(claims))).status_code == status, claim


# --- the keys -------------------------------------------------------------------------------------


@asynccontextmanager
async def bank_with(
    database: Path, key: Key
) -> AsyncIterator[tuple[AuthorizationServer, Bank, Callable[..., Any]]]:
    """Run a bank and its issuer; and say with which status a call with a token is answered."""
    with authorization_server(RESOURCE, [key]) as issuer:
        async with bank_of(database, issuer.origin) as bank:

            async def status(by: Key, kid: str | None = None, **claims: Any) -> int:
                token = by.sign(issuer.claims(**claims), kid=kid or by.kid)
                return (await bank.send(LOOK, token)).status_code

            yield issuer, bank, status


async def test_keys_are_fetched_once_and_no_more_for_names_that_are_made_up(full: Path) -> None:
    key = elliptic("key")
    async with bank_with(full, key) as (issuer, _, status):
        assert [await status(key, n=n) for n in range(5)] == [200] * 5
        assert [await status(key, f"made up {number}") for number in range(9)] == [401] * 9
        assert issuer.fetched == 1


async def test_a_new_key_is_found_and_a_withdrawn_one_goes(
    full: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("banking_server.server.issuer.UNKNOWN_SECONDS", 0)
    old, new = elliptic("old"), elliptic("new")
    async with bank_with(full, old) as (issuer, _, status):
        assert await status(old) == 200
        issuer.keys[:] = [new]
        assert [await status(new), await status(old, n=9)] == [200, 401]


OUTAGES = {
    "an error": Response("no", 500),
    "a redirect": RedirectResponse("/jwks"),
    "keys that are none": JSONResponse({"keys": [{}, {"kty": "RSA", "n": 5}]}),
    "not JSON": Response("x"),
}


async def test_an_outage_is_survived_with_the_keys_that_are_there(
    full: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("banking_server.server.issuer.UNKNOWN_SECONDS", 0)
    key, later = elliptic("key"), elliptic("later")
    async with bank_with(full, key) as (issuer, _, status):
        assert await status(key) == 200
        for kind, issuer.answer in OUTAGES.items():
            assert await status(key, outage=kind) == 200, kind
            assert await status(key, kind) == 503, "it may be a new key"
        assert caplog.text.count("The issuer's keys could not be fetched") == len(OUTAGES)
        issuer.answer = None
        issuer.keys[:] = [later]
        assert await status(later) == 200, "it is over"


async def test_before_there_are_keys_no_token_is_called_invalid(full: Path) -> None:
    key, port = elliptic("key"), free_port()
    claims = AuthorizationServer(RESOURCE, [], f"http://127.0.0.1:{port}").claims()
    async with bank_of(full, f"http://127.0.0.1:{port}") as bank:

        async def has_to_wait() -> None:
            answer = await bank.send(LOOK, key.sign(claims))
            assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
            assert "WWW-Authenticate" not in answer.headers

        await has_to_wait()
        with authorization_server(RESOURCE, [key], port=port) as issuer:
            issuer.answer = JSONResponse([])
            await has_to_wait()
            issuer.answer = None
            assert (await bank.send(LOOK, key.sign(claims))).status_code == 200
