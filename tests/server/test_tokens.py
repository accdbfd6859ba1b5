"""The secret, how it is changed, the keys made of it, and the tokens for a trial."""

import base64
import multiprocessing
import os
import stat
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import httpx2
import jwt
import pytest
from mcp.server.auth.middleware import bearer_auth
from mcp.types import CallToolResult, ElicitResult

from banking_server.server.keys import Keys, SecretUnavailable, load_keys
from banking_server.server.open_bank import utc_now
from banking_server.server.settings import Settings, load_settings
from banking_server.server.tokens import LOCAL, REMEMBERED_SECONDS, CustomerTokens, Tokens

from ..kit.bank import Customer, answered, code_of, one_round, structured
from ..kit.servers import http_client, request_of
from ..kit.words import HANDOFF
from .in_memory import LIST_TOOLS, METADATA, URL, Bank, Seconds, bank_in_memory

pytestmark = pytest.mark.quick

KEY = b"k" * 32
TOKENS = Tokens(KEY, URL)


# --- the secret -----------------------------------------------------------------------------------


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
    assert repr(keys).startswith("<"), "keys are not shown"


def _make(folder: Path, gate: Any, made: Any) -> None:
    gate.wait()
    made.put(load_keys(in_folder(folder)).tokens)


def test_processes_that_start_together_share_one_secret(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork" if os.name == "posix" else "spawn")
    gate, made = context.Barrier(4), context.Queue()
    workers = [context.Process(target=_make, args=(tmp_path, gate, made)) for _ in range(4)]
    for worker in workers:
        worker.start()
    keys = {made.get(timeout=60) for _ in workers}
    for worker in workers:
        worker.join()
    assert len(keys) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["bank.db.secret"]


@pytest.mark.parametrize(
    ("mode", "content", "problem"),
    [
        *[(mode, "s" * 32, "Other users can read .* chmod 600") for mode in (0o640, 0o604)],
        (0o600, "short\n" + "s" * 32, "Each line of the secret file"),
        (0o600, "s" * 32 + "\n\n" + "t" * 32, "Each line of the secret file"),
    ],
)
def test_a_file_that_holds_no_secret_is_refused(
    tmp_path: Path, mode: int, content: str, problem: str
) -> None:
    settings = in_folder(tmp_path)
    settings.secret_path.write_text(content)
    settings.secret_path.chmod(mode)
    with pytest.raises(SecretUnavailable, match=problem):
        load_keys(settings)


def test_a_place_that_cannot_be_used_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SecretUnavailable, match=r"cannot be used: .+\.$"):
        load_keys(in_folder(tmp_path / "file"))


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    settings = load_settings(database=tmp_path / "bank.db", secret="e" * 32)
    assert load_keys(settings) == Keys.derive(b"e" * 32)
    assert list(tmp_path.iterdir()) == []


# --- tokens ---------------------------------------------------------------------------------------


def claims(**changes: Any) -> dict[str, Any]:
    """Return the claims of a good token, changed; None leaves a claim out."""
    good = {
        "iss": LOCAL,
        "sub": "CUST001",
        "aud": URL,
        "exp": utc_now() + timedelta(minutes=5),
        "scope": "bank:read",
    }
    return {name: value for name, value in {**good, **changes}.items() if value is not None}


def signed(key: bytes = KEY, **changes: Any) -> str:
    return jwt.encode(claims(**changes), key, "HS256")


@pytest.mark.anyio
async def test_a_token_for_a_local_trial_is_good_on_any_port_of_this_installation_only() -> None:
    here, on_another_port = (
        Tokens(KEY, f"http://127.0.0.1:{port}/mcp", local=True) for port in (8000, 8001)
    )
    token = here.mint("CUST002", ["bank:read"], now=utc_now(), lifetime=timedelta(seconds=9))
    access = await on_another_port.verify_token(token)
    assert access is not None
    assert (access.subject, access.resource) == ("CUST002", "http://127.0.0.1:8001/mcp")
    assert await TOKENS.verify_token(token) is None, "a server with a URL of its own"
    elsewhere = Tokens(b"o" * 32, URL, local=True)
    assert await elsewhere.verify_token(token) is None, "another installation"


NO_KEY = "it is not signed with a known key, or it is malformed"

REASONS: dict[str, tuple[str, Callable[[], str]]] = {
    "garbage": (NO_KEY, lambda: "garbage"),
    "deep": (NO_KEY, lambda: base64.urlsafe_b64encode(b"[" * 9_000).decode() + ".e30.e30"),
    "another key": (NO_KEY, lambda: signed(b"o" * 32)),
    "no signature": (NO_KEY, lambda: jwt.encode(claims(), None, "none")),
    "expired": ("it has expired", lambda: signed(exp=datetime(2020, 1, 1, tzinfo=UTC))),
    "no expiry": ("it lacks the claim exp", lambda: signed(exp=None)),
    "not yet": (
        "it is not valid yet: compare the clocks",
        lambda: signed(nbf=datetime(2200, 1, 1, tzinfo=UTC)),
    ),
    "another audience": (f"its audience (aud) is not {URL}", lambda: signed(aud="S3CRET")),
    "another issuer": (f"its issuer (iss) is not {LOCAL}", lambda: signed(iss="S3CRET")),
    "no subject": ("it lacks the claim sub", lambda: signed(sub=None)),
    "nobody here": ("its subject is not a customer of this bank", lambda: signed(sub="S3CRET")),
}


@pytest.mark.anyio
@pytest.mark.parametrize(("why", "made"), REASONS.values(), ids=REASONS)
async def test_any_other_token_is_refused_and_the_log_says_why_and_not_what_it_says(
    why: str, made: Callable[[], str], caplog: pytest.LogCaptureFixture
) -> None:
    is_customer = AsyncMock(side_effect={"CUST001"}.__contains__)
    verifier, token = CustomerTokens(TOKENS, is_customer), made()
    assert await verifier.verify_token(signed()) is not None
    assert await verifier.verify_token(token) is None
    assert [line.getMessage() for line in caplog.records] == [f"Refused a token: {why}"]
    assert token not in caplog.text
    assert "S3CRET" not in caplog.text


@pytest.mark.anyio
async def test_an_accepted_token_is_not_checked_again_for_seconds() -> None:
    is_customer, seconds = AsyncMock(return_value=True), Seconds()
    verifier, token = CustomerTokens(TOKENS, is_customer, seconds), signed()
    first = await verifier.verify_token(token)
    seconds.now += REMEMBERED_SECONDS - 0.1
    assert first is not None
    assert await verifier.verify_token(token) is first
    assert is_customer.await_count == 1
    seconds.now += 0.2
    is_customer.return_value = False
    for asked in (2, 3):
        assert await verifier.verify_token(token) is None
        assert is_customer.await_count == asked, "a refusal is not remembered"


@pytest.mark.anyio
async def test_a_token_that_was_just_accepted_expires(
    full: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bank_in_memory(full) as bank:
        token = bank.token()
        for later, status in ((3599, 200), (3602, 401)):
            clock = SimpleNamespace(time=lambda late=later: time.time() + late)
            monkeypatch.setattr(bearer_auth, "time", clock)
            assert (await bank.send(LIST_TOOLS, token)).status_code == status


# --- how a token is sent --------------------------------------------------------------------------

SENT: list[tuple[dict[str, str], str, int]] = [
    # Headers, query, and the status.
    ({}, "", 401),
    ({"Authorization": "Basic Y3VzdG9tZXI6cGFzc3dvcmQ="}, "", 401),
    ({"Authorization": "Bearer"}, "", 401),
    # A token in the query is not looked for.
    ({}, "?access_token={token}", 401),
    ({"Authorization": "bearer {token}"}, "", 200),
]


@pytest.mark.anyio
async def test_a_token_is_sent_in_the_header(full: Path) -> None:
    async with bank_in_memory(full) as bank:
        token = bank.token()
        for sent, query, status in SENT:
            body, headers = request_of(LIST_TOOLS, None)
            headers |= {name: value.format(token=token) for name, value in sent.items()}
            url = URL + query.format(token=token)
            answer = await bank.http.post(url, headers=headers, content=body)
            assert answer.status_code == status
            if status != 200:
                assert answer.headers["WWW-Authenticate"] == (
                    'Bearer error="invalid_token", error_description="Authentication required", '
                    f'resource_metadata="{METADATA}"'
                )
            assert token not in answer.text + str(answer.headers)
        # There is no authorization server for a trial, so that none is named.
        assert (await bank.http.get(METADATA)).json() == {
            "resource": URL,
            "scopes_supported": ["bank:read", "bank:transfer"],
            "bearer_methods_supported": ["header"],
        }


# --- another secret -------------------------------------------------------------------------------

OLD, NEW = "o" * 32, "n" * 32


@pytest.mark.anyio
async def test_answers_and_codes_of_the_old_secret_stay_valid_during_a_rotation(full: Path) -> None:
    customer = Customer("auto")
    async with AsyncExitStack() as running:
        before, during, after = [
            await running.enter_async_context(bank_in_memory(full, secret=secret, workers=2))
            for secret in (OLD, f"{NEW}\n{OLD}", NEW)
        ]

        def client(bank: Bank, token: str, answer: Any = None) -> Any:
            return http_client(URL, token, "auto", answer, httpx2.ASGITransport(bank.app))

        # A question is asked before, and answered during the change, with the same token.
        old = before.token(), customer.on_question
        handoff = HANDOFF, {"reason": "A question"}
        async with client(before, *old) as customer.client:
            asked = await one_round(customer, *handoff)
        answer = answered(asked, ElicitResult(action="accept", content={"picked": "callback"}))
        async with client(during, *old) as customer.client:
            result = await one_round(customer, *handoff, **answer)
        assert isinstance(result, CallToolResult)
        assert structured(result)["choice"] == "callback"

        # A code that was given before is good while there are both secrets.
        async with client(before, before.token()) as customer.client:
            prepared = [await customer.prepare(amount=amount) for amount in (5, 6)]
        for server, each, posted in ((during, prepared[0], True), (after, prepared[1], False)):
            transfer, code = structured(each)["transferId"], code_of(each)
            async with client(server, server.token()) as customer.client:
                result = await customer.confirm(transfer, confirmationCode=code)
            assert (structured(result).get("status") == "posted") is posted
            assert result.is_error is not posted
