"""Views of MCP Apps: who is offered them, what they are given, and what confirms in one."""

import re
from typing import Any

import pytest
from mcp import MCPError
from mcp.client import advertise
from mcp.server.apps import APP_MIME_TYPE, EXTENSION_ID
from mcp.types import CallToolResult

from banking_server.bank.handoffs import claim_handoff
from banking_server.tools import TOOLS
from banking_server.tools.views.offering import ACCOUNTS as ACCOUNTS_VIEW
from banking_server.tools.views.offering import DATA
from banking_server.tools.views.offering import HANDOFF as HANDOFF_VIEW
from banking_server.tools.views.offering import STATEMENT as STATEMENT_VIEW
from banking_server.tools.views.offering import TRANSFER as TRANSFER_VIEW

from ..kit.bank import Customer, World, code_of, everything, facts, refused, structured, words
from ..kit.words import (
    ACCOUNTS,
    CHOICE,
    CONFIRM,
    EVERYDAY,
    HANDOFF,
    LOCKED,
    PAYEE,
    PREPARE,
    SAVINGS,
    STATEMENT,
    TO_SAVINGS,
)
from ..multiplex.support import multiplex, request
from ..views.mini_host import SHOWS_VIEWS

pytestmark = pytest.mark.anyio

KINDS = ("connect", "resource", "frame", "baseUri")
CONFIRM_IN_VIEW = "confirm_in_view"
LOOK_TRANSFER = "look_at_transfer"
LOOK_HANDOFF = "look_at_handoff"


def for_view(result: CallToolResult) -> dict[str, Any] | None:
    """What stands in a result for the view alone."""
    found: dict[str, Any] | None = (result.meta or {}).get(DATA)
    return found


def secret_of(result: CallToolResult) -> str:
    found = for_view(result)
    assert found is not None
    return str(found["secret"])


async def in_view(person: Customer, transfer_id: str, secret: str) -> Any:
    return await person.call(CONFIRM_IN_VIEW, transferId=transfer_id, secret=secret)


# --- who is offered them --------------------------------------------------------------------------


async def test_a_client_that_shows_views_is_offered_them(world: World, mode: str) -> None:
    async with world.customer(mode=mode, extensions=[SHOWS_VIEWS]) as person:
        listed = {tool.name: tool.meta for tool in (await person.client.list_tools()).tools}
        views = {name: meta["ui"] for name, meta in listed.items() if meta and "ui" in meta}
        assert views == {
            ACCOUNTS: {"resourceUri": ACCOUNTS_VIEW},
            PREPARE: {"resourceUri": TRANSFER_VIEW},
            CONFIRM: {"resourceUri": TRANSFER_VIEW},
            HANDOFF: {"resourceUri": HANDOFF_VIEW},
            STATEMENT: {"resourceUri": STATEMENT_VIEW},
            CONFIRM_IN_VIEW: {"visibility": ["app"]},
            LOOK_TRANSFER: {"visibility": ["app"]},
            LOOK_HANDOFF: {"visibility": ["app"]},
        }
        resources = (await person.client.list_resources()).resources
        offered = {str(one.uri): one for one in resources if one.mime_type == APP_MIME_TYPE}
        assert list(offered) == [ACCOUNTS_VIEW, TRANSFER_VIEW, HANDOFF_VIEW, STATEMENT_VIEW]
        for uri in offered:
            (content,) = (await person.client.read_resource(uri)).contents
            assert content.mime_type == APP_MIME_TYPE
            assert content.meta == offered[uri].meta
            assert "default-src 'none'; script-src 'sha256-" in content.text
            csp = content.meta["ui"]["csp"]
            assert csp == {f"{kind}Domains": [] for kind in KINDS}
        if mode == "auto":
            assert EXTENSION_ID in (person.client.server_capabilities.extensions or {})


@pytest.mark.parametrize(
    "declared",
    [{}, {"mimeTypes": None}, {"mimeTypes": APP_MIME_TYPE}, {"mimeTypes": ["text/html"]}],
    ids=repr,
)
async def test_a_client_without_mcp_apps_is_offered_no_views(
    world: World, mode: str, declared: dict[str, Any]
) -> None:
    said = advertise(EXTENSION_ID, declared)
    async with world.customer(mode=mode, extensions=[said]) as person:
        listed = (await person.client.list_tools()).tools
        assert [tool.name for tool in listed] == [tool.name for tool in TOOLS]
        assert not any("ui" in (tool.meta or {}) for tool in listed)
        assert APP_MIME_TYPE not in (await person.client.list_resources()).model_dump_json()
        assert for_view(await person.prepare()) is None
        assert structured(await person.call(LOOK_HANDOFF))["status"] == "unknown_tool"
        with pytest.raises(MCPError, match="ui://bank"):
            await person.client.read_resource(ACCOUNTS_VIEW)


# --- what a view is given -------------------------------------------------------------------------


@pytest.mark.parametrize("form", [True, False], ids=["can be asked", "cannot"])
async def test_a_view_takes_the_place_of_the_form(world: World, mode: str, form: bool) -> None:
    async with world.customer(mode=mode, extensions=[SHOWS_VIEWS], can_be_asked=form) as person:
        asked = await person.call(PREPARE, amount=12)
        assert structured(asked)["field"] == "fromAccountId"
        data = for_view(asked)
        assert data is not None
        shown = {account["accountId"]: account for account in data["accounts"]}
        choices = [choice["accountId"] for choice in structured(asked)["choices"]]
        assert list(shown) == choices
        assert shown[LOCKED]["isLocked"] is True
        assert shown[SAVINGS]["available"] == 25_000
        assert "can choose there" in words(asked, "assistant")

        asked = await person.call(PREPARE, amount=12, fromAccountId=EVERYDAY)
        assert structured(asked)["field"] == "toAccountId"
        assert PAYEE in [one["accountId"] for one in (for_view(asked) or {})["accounts"]]

        prepared = await person.prepare(toAccountId=PAYEE, amount=12)
        assert for_view(prepared) == {
            "from": {"accountName": "Everyday Checking"},
            "to": {"accountName": "Rent Payments", "accountHolder": "Fictional Homes Ltd"},
            "secret": secret_of(prepared),
        }
        assert not re.search(r"\b\d{6}\b", words(prepared))
        assert "confirms or cancels it there" in words(prepared, "assistant")

        handoff = await person.call(HANDOFF, reason="To ask")
        assert structured(handoff)["choices"] == ["realtime", "callback"]


async def test_a_multiplexed_step_asks_with_a_form(world: World) -> None:
    """`multiplex_tools` has none that could take its place, and gives nothing that confirms."""
    async with world.customer(extensions=[SHOWS_VIEWS], answers=[]) as person:
        done = await multiplex(person, request(1, PREPARE, {**TO_SAVINGS, "amount": 12}))
        assert "pending" in everything(done)
        assert DATA not in everything(done)
        assert not re.search(r"\b\d{6}\b", words(done))
        refused = await multiplex(person, request(1, LOOK_HANDOFF, {}))
        assert f"there is no tool '{LOOK_HANDOFF}'" in words(refused)


# --- the customer's own act -----------------------------------------------------------------------


async def test_the_secret_confirms_once(world: World) -> None:
    async with world.customer(extensions=[SHOWS_VIEWS], answers=[]) as person:
        prepared = await person.prepare()
        transfer_id = structured(prepared)["transferId"]
        assert re.fullmatch("[0-9a-f]{64}", secret_of(prepared))
        assert secret_of(await person.prepare()) == secret_of(prepared)
        posted = await in_view(person, transfer_id, secret_of(prepared))
        assert facts(posted)["status"] == "posted"
        funds = world.funds(SAVINGS)
        again = await in_view(person, transfer_id, secret_of(prepared))
        assert facts(again) == facts(posted)
        assert world.funds(SAVINGS) == funds
        seen = await person.call(LOOK_TRANSFER, transferId=transfer_id)
        assert facts(seen) == facts(posted)
        assert "secret" not in (for_view(seen) or {})


async def test_the_secret_is_bound_to_one_transfer_of_one_customer(world: World) -> None:
    async with world.customer(extensions=[SHOWS_VIEWS]) as person:
        prepared, other = await person.prepare(), await person.prepare(amount=26)
        transfer_id, secret = structured(prepared)["transferId"], secret_of(prepared)
        for wrong in (secret_of(other), secret[:-1], secret.upper(), "", "\ud800é", "0" * 64):
            said = refused(await in_view(person, transfer_id, wrong), "secret")
            assert "Nothing was moved" in said
            assert not wrong or wrong not in said
        code = world.sql("SELECT wrong_codes FROM transfer WHERE transfer_id = ?", transfer_id)
        assert code == [(0,)]
        async with world.customer("CUST002", extensions=[SHOWS_VIEWS]) as stranger:
            for call in (
                await in_view(stranger, transfer_id, secret),
                await stranger.call(LOOK_TRANSFER, transferId=transfer_id),
            ):
                assert facts(call)["status"] == "not_found"
        assert facts(await in_view(person, transfer_id, secret))["status"] == "posted"
    assert (CONFIRM_IN_VIEW, "secret_refused") in world.outcomes()


async def test_a_no_or_a_cancellation_voids_the_secret(world: World) -> None:
    async with (
        world.customer(extensions=[SHOWS_VIEWS]) as person,
        world.customer(answers=["decline"]) as elsewhere,
    ):
        prepared = await person.prepare()
        transfer_id = structured(prepared)["transferId"]
        await elsewhere.confirm(transfer_id)
        refused(await in_view(person, transfer_id, secret_of(prepared)), "secret")
        seen = await person.call(LOOK_TRANSFER, transferId=transfer_id)
        await person.cancel(transfer_id)
        ended = await in_view(person, transfer_id, secret_of(seen))
        assert structured(ended)["status"] == "voided"


@pytest.mark.parametrize("form", [True, False], ids=["can be asked", "cannot"])
async def test_a_model_cannot_confirm_in_place_of_the_view(world: World, form: bool) -> None:
    async with world.customer() as other:
        code = code_of(await other.prepare())
    async with world.customer(extensions=[SHOWS_VIEWS], can_be_asked=form) as person:
        transfer_id = structured(await person.prepare())["transferId"]
        for given in ({}, {"confirmationCode": code}, {"confirmationCode": "000000"}):
            answer = await person.confirm(transfer_id, **given)
            assert facts(answer)["status"] == "confirmation_needed"
            assert "on the card that shows it" in words(answer)
        posted = await in_view(person, transfer_id, secret_of(answer))
        assert facts(posted)["status"] == "posted"
        again = await person.confirm(transfer_id)
        assert for_view(again) == {key: (for_view(answer) or {})[key] for key in ("from", "to")}
        other_id = structured(await person.prepare(amount=26))["transferId"]
        assert set(for_view(await person.cancel(other_id)) or {}) == {"from", "to"}
        assert for_view(await person.cancel("tr_0")) is None
        assert for_view(await person.confirm("tr_0")) is None


async def test_the_secret_is_in_no_log_and_not_stored(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    async with world.customer(extensions=[SHOWS_VIEWS]) as person:
        prepared = await person.prepare()
        transfer_id, secret = structured(prepared)["transferId"], secret_of(prepared)
        results = [await in_view(person, transfer_id, secret)]
        results.append(await person.call(CONFIRM_IN_VIEW, transferId=transfer_id, secret=[secret]))
        results.append(await in_view(person, transfer_id, secret))
        results.append(await person.call(LOOK_TRANSFER, transferId=transfer_id))
    (text,) = {everything(prepared).replace(secret, "", 1)}
    ours = [line for line in caplog.text.splitlines() if "banking_server" in line]
    for kept in (text, *map(everything, results), *map(str, world.events()), *ours):
        assert secret not in kept
    assert secret not in str(world.stored())


# --- looking at a handoff -------------------------------------------------------------------------


async def test_a_view_learns_that_an_agent_has_taken_over(world: World) -> None:
    async with world.customer(extensions=[SHOWS_VIEWS]) as person:
        handoff_id = structured(await person.call(HANDOFF, reason="To ask"))["handoffId"]
        by_reason = await person.call(LOOK_HANDOFF, reason="To ask")
        assert structured(by_reason)["handoffId"] == handoff_id
        await person.call(CHOICE, handoffId=handoff_id, choice="callback")
        async with world.desk() as bank:
            await claim_handoff(bank, handoff_id, agent="Sam", now=world.clock())
        seen = await person.call(LOOK_HANDOFF, handoffId=handoff_id)
        assert facts(seen)["status"] == "claimed"
        assert "has taken this over" in words(seen)
        none = await person.call(LOOK_HANDOFF, reason="To ask")
        assert "is open" in refused(none, "reason")
    async with world.customer("CUST002", extensions=[SHOWS_VIEWS]) as stranger:
        other = await stranger.call(LOOK_HANDOFF, handoffId=handoff_id)
        assert facts(other)["status"] == "not_found"
