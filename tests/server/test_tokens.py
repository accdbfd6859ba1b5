"""The secret, the keys made of it, and tokens."""

import base64
import io
import json
import logging
import multiprocessing
import os
import stat
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jwt
import pytest

from banking_server.log import A_MINUTE, RepeatedFaults
from banking_server.server.running import Running
from banking_server.server.settings import Settings, load_settings
from banking_server.server.tokens import (
    REMEMBERED_SECONDS,
    CustomerTokens,
    Keys,
    SecretUnavailable,
    Tokens,
    load_keys,
)

RESOURCE = "http://127.0.0.1:8000/mcp"
KEY = b"k" * 32
TOKENS = Tokens(KEY, RESOURCE)


def in_folder(folder: Path) -> Settings:
    return load_settings(database=folder / "bank.db")


def test_the_secret_is_made_once_for_its_owner_only(tmp_path: Path) -> None:
    settings = in_folder(tmp_path / "new" / "folder")
    keys = load_keys(settings)
    path = tmp_path / "new" / "folder" / "bank.db.secret"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(path.parent.iterdir()) == [path]
    assert load_keys(settings) == keys
    assert len({keys.tokens, keys.confirmation_codes, keys.request_state}) == 3


def _make(folder: Path, gate: Any, made: Any) -> None:
    gate.wait()
    made.put(load_keys(in_folder(folder)).tokens)


def test_processes_that_start_together_share_one_secret(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork" if os.name == "posix" else "spawn")
    for attempt in range(5):
        folder = tmp_path / str(attempt)
        gate, made = context.Barrier(4), context.Queue()
        workers = [context.Process(target=_make, args=(folder, gate, made)) for _ in range(4)]
        for worker in workers:
            worker.start()
        keys = {made.get(timeout=60) for _ in workers}
        for worker in workers:
            worker.join()
        assert len(keys) == 1
        assert [path.name for path in folder.iterdir()] == ["bank.db.secret"]


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o620])
def test_a_secret_that_others_can_get_at_is_refused(tmp_path: Path, mode: int) -> None:
    settings = in_folder(tmp_path)
    load_keys(settings)
    settings.secret_path.chmod(mode)
    with pytest.raises(SecretUnavailable, match="can be read by others; chmod 600"):
        load_keys(settings)


@pytest.mark.parametrize("content", ["", "short\n"])
def test_a_file_without_a_secret_is_refused(tmp_path: Path, content: str) -> None:
    settings = in_folder(tmp_path)
    settings.secret_path.write_text(content)
    settings.secret_path.chmod(0o600)
    with pytest.raises(SecretUnavailable, match="holds no secret"):
        load_keys(settings)


def test_a_place_that_cannot_be_used_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SecretUnavailable, match=r"cannot be used: .+\.$"):
        load_keys(in_folder(tmp_path / "file"))


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    settings = load_settings(database=tmp_path / "bank.db", secret="e" * 32)
    assert load_keys(settings) == Keys.derive(b"e" * 32)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.anyio
async def test_while_the_secret_is_changed_both_are_good(tmp_path: Path) -> None:
    old, new = "o" * 32, "n" * 32
    settings = in_folder(tmp_path)
    load_keys(settings)

    def tokens(*lines: str) -> Tokens:
        settings.secret_path.write_text("\r\n".join(lines) + "\n")
        written = load_keys(settings)
        assert load_keys(load_settings(secret="\n".join(lines))) == written
        return Tokens.of(settings, written)

    def mint(by: Tokens) -> str:
        return by.mint("CUST001", ["bank:read"], now=now(), lifetime=timedelta(seconds=9))

    before, during, after = tokens(old), tokens(new, old, new), tokens(new)
    first, second = mint(before), mint(during)
    kids = [jwt.get_unverified_header(token)["kid"] for token in (first, second)]
    assert len(set(kids)) == 2
    assert jwt.get_unverified_header(mint(after))["kid"] == kids[1]
    for token, good in ((first, [before, during]), (second, [during, after])):
        for each in (before, during, after):
            assert (await each.verify_token(token) is not None) == (each in good)
    # A name decides nothing by itself.
    swapped = jwt.encode(claims(), before.key, "HS256", headers={"kid": kids[1]})
    assert await during.verify_token(swapped) is None


@pytest.mark.parametrize("lines", ["short\n" + "s" * 32, "s" * 32 + "\n\n" + "t" * 32])
def test_a_short_line_is_no_secret(tmp_path: Path, lines: str) -> None:
    settings = in_folder(tmp_path)
    load_keys(settings)
    settings.secret_path.write_text(lines)
    with pytest.raises(SecretUnavailable, match="characters in each line"):
        load_keys(settings)


def test_keys_are_not_shown() -> None:
    assert repr(Keys.derive(KEY)).startswith("<")
    assert repr(TOKENS).startswith("<")


def now() -> datetime:
    return datetime.now(UTC)


def claims(**changes: Any) -> dict[str, Any]:
    """Return the claims of a good token, changed; None leaves a claim out."""
    good = {
        "iss": "http://127.0.0.1:8000",
        "sub": "CUST001",
        "aud": RESOURCE,
        # Some are made before all tests, and have to last until their own.
        "exp": now() + timedelta(hours=2),
        "scope": "bank:read",
    }
    return {name: value for name, value in {**good, **changes}.items() if value is not None}


def unsigned(payload: dict[str, Any]) -> str:
    def encoded(part: dict[str, Any]) -> str:
        text = json.dumps(part, default=lambda moment: int(moment.timestamp()))
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    return f"{encoded({'alg': 'none', 'typ': 'JWT'})}.{encoded(payload)}."


@pytest.mark.anyio
async def test_what_is_minted_is_read() -> None:
    token = TOKENS.mint("CUST002", ["bank:read"], now=now(), lifetime=timedelta(seconds=9))
    access = await TOKENS.verify_token(token)
    assert access is not None
    assert (access.subject, access.scopes, access.resource) == ("CUST002", ["bank:read"], RESOURCE)
    read = jwt.decode(token, options={"verify_signature": False})
    assert read["exp"] - read["iat"] == 9


@pytest.mark.anyio
async def test_a_token_for_a_local_trial_is_good_on_any_port_of_this_installation_only() -> None:
    here, on_another_port = (
        Tokens(KEY, f"http://127.0.0.1:{port}/mcp", local=True) for port in (8000, 8001)
    )
    token = here.mint("CUST002", ["bank:read"], now=now(), lifetime=timedelta(seconds=9))
    access = await on_another_port.verify_token(token)
    assert access is not None
    assert (access.subject, access.resource) == ("CUST002", "http://127.0.0.1:8001/mcp")
    assert await TOKENS.verify_token(token) is None, "a server with a URL of its own"
    elsewhere = Tokens(b"o" * 32, RESOURCE, local=True)
    assert await elsewhere.verify_token(token) is None, "another installation"
    meant_elsewhere = jwt.encode(claims(aud="http://127.0.0.1:9999/mcp"), KEY, "HS256")
    assert await on_another_port.verify_token(meant_elsewhere) is None


@pytest.mark.anyio
@pytest.mark.parametrize(
    "token",
    [
        "",
        "garbage",
        "a.b.c",
        "\ud800",
        jwt.encode(claims(), b"o" * 32, "HS256"),
        jwt.encode(claims(), b"k" * 64, "HS512"),
        jwt.encode(claims(exp=datetime(2020, 1, 1, tzinfo=UTC)), KEY, "HS256"),
        jwt.encode(claims(exp=None), KEY, "HS256"),
        jwt.encode(claims(nbf=datetime(2200, 1, 1, tzinfo=UTC)), KEY, "HS256"),
        jwt.encode(claims(aud="http://127.0.0.1:8001/mcp"), KEY, "HS256"),
        jwt.encode(claims(aud=None), KEY, "HS256"),
        jwt.encode(claims(iss="http://127.0.0.1:8001"), KEY, "HS256"),
        jwt.encode(claims(iss=None), KEY, "HS256"),
        jwt.encode(claims(sub=None), KEY, "HS256"),
        unsigned(claims()),
        base64.urlsafe_b64encode(b"[" * 30_000).decode() + ".e30.e30",
    ],
)
async def test_any_other_token_is_refused(token: str) -> None:
    assert await TOKENS.verify_token(jwt.encode(claims(), KEY, "HS256")) is not None
    assert await TOKENS.verify_token(token) is None


REASONS = {
    "it is no JWT": "garbage",
    "it is longer than 16384 characters": "x" * 20_000,
    "it is signed with no key that is known here, or malformed": jwt.encode(
        claims(), b"o" * 32, "HS256"
    ),
    "it has expired": jwt.encode(claims(exp=datetime(2020, 1, 1, tzinfo=UTC)), KEY, "HS256"),
    "it is not good yet: compare the clocks": jwt.encode(
        claims(nbf=datetime(2200, 1, 1, tzinfo=UTC)), KEY, "HS256"
    ),
    f"its audience (aud) is not {RESOURCE}": jwt.encode(claims(aud="S3CRET"), KEY, "HS256"),
    f"its issuer (iss) is not {TOKENS.issuer}": jwt.encode(claims(iss="S3CRET"), KEY, "HS256"),
    "it lacks the claim sub": jwt.encode(claims(sub=None), KEY, "HS256"),
    "it is for nobody who is a customer here": jwt.encode(claims(sub="S3CRET"), KEY, "HS256"),
}


@pytest.mark.anyio
async def test_the_log_says_why_a_token_is_refused_and_not_what_it_says(
    caplog: pytest.LogCaptureFixture,
) -> None:
    verifier = CustomerTokens(TOKENS, Customers())
    for why, token in REASONS.items():
        caplog.clear()
        assert await verifier.verify_token(token) is None
        assert [line.getMessage() for line in caplog.records] == [f"Refused a token: {why}"]
        assert token not in caplog.text
        assert "S3CRET" not in caplog.text
    # So many of one reason leave room for the others.
    bounded = RepeatedFaults(lambda: 0.0)
    handler = logging.StreamHandler(written := io.StringIO())
    handler.addFilter(bounded)
    logger = logging.getLogger("banking_server.server.tokens")
    logger.addHandler(handler)
    try:
        for token in ["garbage"] * 20 + [REASONS["it has expired"]]:
            await verifier.verify_token(token)
    finally:
        logger.removeHandler(handler)
    assert len(written.getvalue().splitlines()) == A_MINUTE + 2


@pytest.mark.anyio
async def test_the_keys_for_codes_and_state_sign_no_tokens() -> None:
    keys = Keys.derive(KEY)
    tokens = Tokens(keys.tokens, RESOURCE)
    for other in (keys.confirmation_codes, keys.request_state, KEY):
        assert await tokens.verify_token(jwt.encode(claims(), other, "HS256")) is None


@pytest.mark.anyio
async def test_only_a_customer_is_let_in() -> None:
    async def is_customer(subject: str) -> bool:
        return subject == "CUST001"

    verifier = CustomerTokens(TOKENS, is_customer)
    assert await verifier.verify_token(jwt.encode(claims(), KEY, "HS256")) is not None
    assert await verifier.verify_token(jwt.encode(claims(sub="CUST009"), KEY, "HS256")) is None
    assert await verifier.verify_token("garbage") is None


class Customers:
    """Knows one customer, and counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.known = {"CUST001"}

    async def __call__(self, subject: str) -> bool:
        self.asked += 1
        return subject in self.known


@pytest.mark.anyio
async def test_what_was_accepted_is_remembered_for_seconds() -> None:
    customers, seconds = Customers(), [time.time()]
    verifier = CustomerTokens(TOKENS, customers, lambda: seconds[0])
    token = jwt.encode(claims(), KEY, "HS256")
    first = await verifier.verify_token(token)
    seconds[0] += REMEMBERED_SECONDS - 0.1
    assert first is not None
    assert await verifier.verify_token(token) is first
    assert customers.asked == 1
    customers.known.clear()
    seconds[0] += 0.2
    assert await verifier.verify_token(token) is None
    assert await verifier.verify_token(token) is None
    assert customers.asked == 3, "a refusal is not remembered"


@pytest.mark.anyio
@pytest.mark.parametrize("step", [-60.0, 0.9])
async def test_a_clock_set_back_or_an_expiry_ends_it(step: float) -> None:
    customers, start = Customers(), float(int(time.time()))
    seconds = [start]
    verifier = CustomerTokens(TOKENS, customers, lambda: seconds[0])
    soon = datetime.fromtimestamp(start + 3600, UTC)
    token = jwt.encode(claims(exp=soon), KEY, "HS256")
    assert await verifier.verify_token(token) is not None
    seconds[0] = start + step
    assert await verifier.verify_token(token) is not None
    assert customers.asked == (2 if step < 0 else 1)
    seconds[0] = start + 3599.5
    assert await verifier.verify_token(token) is not None
    seconds[0] = start + 3600
    assert await verifier.verify_token(token) is None


@pytest.mark.anyio
async def test_only_so_many_are_remembered() -> None:
    customers = Customers()
    verifier = CustomerTokens(TOKENS, customers)
    first = jwt.encode(claims(), KEY, "HS256")
    for number in range(1025):
        token = jwt.encode(claims(number=number), KEY, "HS256") if number else first
        assert await verifier.verify_token(token) is not None
    assert await verifier.verify_token(token) is not None
    assert customers.asked == 1025
    assert await verifier.verify_token(first) is not None
    assert customers.asked == 1026


@pytest.mark.anyio
async def test_while_the_bank_is_closed_nobody_is_let_in() -> None:
    verifier = CustomerTokens(TOKENS, Running().is_customer)
    assert await verifier.verify_token(jwt.encode(claims(), KEY, "HS256")) is None
