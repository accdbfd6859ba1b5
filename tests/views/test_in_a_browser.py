"""The views in a real browser, in a small host, on a real bank: the states that they show."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tool_chaining import META_KEY

from ..kit.bank import World, copy_of
from ..kit.browser import LACKING, running_browser
from ..kit.words import (
    ACCOUNTS,
    APPROVAL,
    EVERYDAY,
    HANDOFF,
    LOCKED,
    LOCKED_REASON,
    PAYEE,
    PREPARE,
    SAVINGS,
    STATEMENT,
)
from ..specs.test_schemas import NEXT_TOOL
from .mini_host import MiniHost, fills_its_frame, hosting, steps

pytestmark = pytest.mark.needs_program(LACKING)

WIDTHS = (280, 440, 760)
"""Of the window, 32 wider than the view: a small phone's, the Inspector's, a wide chat's."""

BOTH = {"fromAccountId": EVERYDAY, "toAccountId": SAVINGS}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with running_browser() as started:
        yield started


@pytest.fixture
def world(filled: Path, tmp_path: Path) -> World:
    return World(copy_of(filled, tmp_path))


@pytest.fixture
def host(browser: Any, world: World) -> Iterator[MiniHost]:
    with hosting(browser, world) as host:
        yield host


def test_a_transfer_is_chosen_confirmed_and_receipted_by_the_keyboard(
    host: MiniHost, world: World
) -> None:
    host.open(PREPARE, {"amount": 250, "memo": "<img src=x onerror=alert(1)>"})
    assert "You want to move 250.00, in the account's currency." in host.text()
    assert "5,250.75 USD" in host.text()
    everyday = host.view.get_by_role("button", name="Everyday Checking")
    everyday.focus()
    host.page.keyboard.press("Enter")
    host.says("Where should the money go?")
    assert "You want to move 250.00 USD." in host.text()
    assert host.view.locator(".badge").get_attribute("class") == "badge soft"
    assert focused(host) == "Where should the money go?"
    host.view.get_by_role("button", name="High Yield Savings").focus()
    host.page.keyboard.press("Space")
    host.says("Confirm this transfer")
    assert "<img src=x onerror=alert(1)>" in host.text()
    assert "2 Mar 2026, 10:10 UTC (in 10 minutes)" in host.text()
    assert world.sql("SELECT status FROM transfer") == [("pending",)]
    host.view.locator("button:not([aria-disabled])", has_text="Confirm").wait_for()
    host.page.keyboard.press("Tab")
    host.page.keyboard.press("Enter")
    host.says("Transferred")
    assert world.sql("SELECT status FROM transfer") == [("posted",)]
    assert [name for name, _ in host.calls] == [PREPARE, PREPARE, "confirm_in_view"]
    secret = host.calls[-1][1]["secret"]
    (mentioned,) = host.mentioned()
    assert "was made at" in mentioned
    assert secret not in mentioned + host.text()


def focused(host: MiniHost) -> str:
    return str(host.view.locator(":focus").inner_text())


def test_a_locked_account_is_handed_off_where_nobody_follows(host: MiniHost, world: World) -> None:
    host.open(PREPARE, {"amount": 250, "fromAccountId": LOCKED})
    host.says("is currently locked")
    assert world.sql("SELECT count(*) FROM handoff") == [(0,)]
    host.press("Speak to an agent")
    host.says("How would you like to be connected?")
    assert "Customer attempted" not in host.text()
    assert host.calls == [(HANDOFF, {"reason": LOCKED_REASON})]
    host.press("Be called back")
    host.says("An agent will call you back.")
    host.press("Speak to an agent now instead")
    host.says("as soon as one is free")
    assert world.sql("SELECT choice FROM handoff") == [("realtime",)]

    # Looked at by itself: rarely, since a host lists every call.
    looked = len(host.calls)
    host.page.clock.fast_forward(15_000)
    host.press("Check again")
    host.view.locator("h2:focus").wait_for()
    assert len(host.calls) == looked + 2
    claimed = "UPDATE handoff SET status = 'claimed', claimed_by = 'Sam', claimed_at = created_at"
    world.sql(claimed)
    host.page.clock.fast_forward(40_000)
    host.says("An agent has taken your request")
    looked = len(host.calls)
    host.page.clock.fast_forward(3_600_000)
    assert len(host.calls) == looked
    assert "An agent has taken your request." in host.view.get_by_role("status").inner_text()


def test_steps_that_a_proxy_followed_are_shown(host: MiniHost, world: World) -> None:
    """With each status of a follow-up call; the examples are those of the schema."""
    done, undone = NEXT_TOOL["$defs"]["followedChain"]["examples"]
    locked = {"amount": 250, "fromAccountId": LOCKED}
    host.open(PREPARE, locked, undone)
    assert steps(host.view) == [
        ["Ask a manager: it failed", "cross"],
        ["Report the payment: it may or may not have been done", "cross"],
    ]
    handoff = done["followUps"][0]
    host.result(handoff["tool"], handoff["arguments"])
    host.open(PREPARE, locked, done)
    assert steps(host.view) == [
        ["A request for an agent was opened", "check"],
        ["Call a further tool: it was not done", "cross"],
    ]
    host.press("Speak to an agent now")
    host.says("An agent will speak with you as soon as one is free.")
    assert world.sql("SELECT reason, choice FROM handoff") == [(LOCKED_REASON, "realtime")]


def test_a_large_transfer_waits_for_the_manager(host: MiniHost, world: World) -> None:
    large = {"amount": 12_000, "fromAccountId": SAVINGS, "toAccountId": PAYEE}
    host.open(PREPARE, large)
    host.says("A manager has to approve this")
    assert host.view.get_by_role("button", name="Confirm transfer").count() == 0
    # A look takes nothing away: who has not asked yet still can, and sees later that they did.
    check_again(host)
    host.failing = "no way to the server"
    host.press("Ask a manager")
    host.says("No answer came from the bank: no way to the server")
    host.failing = None
    host.press("Ask a manager")
    host.says("A manager was asked to approve")
    check_again(host)
    host.says("A manager was asked to approve")
    assert host.view.get_by_role("button", name="Ask a manager").count() == 0
    host.portal.call(world.grant)
    # Nobody has to ask: it is looked at now and then.
    host.page.clock.fast_forward(15_000)
    host.says("Confirm this transfer")
    assert host.view.get_by_text("A manager was asked to approve").count() == 0
    assert "approved" in host.view.get_by_role("status").inner_text()
    host.press("Confirm transfer")
    host.says("Transferred")
    # A payment of this size is reported: where nobody follows, the customer lets it be done.
    host.press("Report the payment")
    host.says("The bank's compliance desk was told")
    assert world.sql("SELECT count(*) FROM compliance_report") == [(1,)]


def check_again(host: MiniHost) -> None:
    host.press("Check again")
    host.view.locator("h1:focus", has_text="A manager has to approve this").wait_for()


def test_an_expired_transfer_can_be_prepared_again(host: MiniHost, world: World) -> None:
    host.open(PREPARE, {"amount": 25, **BOTH})
    world.clock.move(minutes=11)
    host.page.clock.fast_forward(660_000)
    host.says("Not confirmed in time")
    told = host.view.get_by_role("status").inner_text()
    assert told == "This has expired. You can prepare it again."
    assert host.calls[-1][0] == "look_at_transfer"
    host.press("Prepare it again")
    host.says("Confirm this transfer")
    ((expired_id,), _) = world.sql("SELECT transfer_id FROM transfer ORDER BY created_at")
    assert host.calls[-1][1]["expiredTransferId"] == expired_id
    host.open(PREPARE, {"amount": 26, **BOTH})
    world.clock.move(minutes=11)
    host.press("Confirm transfer")
    host.says("Not confirmed in time")
    host.press("Prepare it again")
    host.says("Confirm this transfer")
    host.press("Cancel transfer")
    host.says("Cancelled")
    assert "No money was moved." in host.text()
    statuses = world.sql("SELECT status, count(*) FROM transfer GROUP BY status ORDER BY status")
    assert statuses == [("expired", 1), ("pending", 2), ("voided", 1)]


def test_errors_are_shown_with_a_way_on(host: MiniHost, world: World) -> None:
    host.open(PREPARE, {"amount": 25, **BOTH})
    world.sql("UPDATE account SET can_transfer_to = 0 WHERE account_id = ?", SAVINGS)
    host.press("Confirm transfer")
    host.says("That did not work")
    assert "toAccountId:" not in host.text()
    host.failing = "no way to the server"
    host.press("Look again")
    host.says("No answer came from the bank: no way to the server")
    host.failing = None
    host.press("Look again")
    host.says("Confirm this transfer")
    world.sql("UPDATE account SET can_transfer_to = 1 WHERE account_id = ?", SAVINGS)
    # What cannot be paid from this account may be from another, or another amount may be.
    host.open(PREPARE, {"amount": 9_999, **BOTH})
    host.view.get_by_role("button", name="Choose another account").wait_for()
    change(host, "Another amount", "999")
    host.says("999.00 USD")
    host.open(PREPARE, {"amount": 25, **BOTH, "scheduledDate": "tomorrow"})
    change(host, "Another date", "2026-04-01")
    host.says("1 April 2026")
    host.open(PREPARE, {"amount": 26, **BOTH, "memo": "x" * 141})
    change(host, "Another note", "Rent")
    host.says("Rent")
    host.open(PREPARE, {"amount": 9_999, "fromAccountId": "acc_0", "toAccountId": SAVINGS})
    host.says("You have no account with this number.")
    host.press("Choose another account")
    host.says("Which account should the money come from?")
    world.sql("ALTER TABLE transfer RENAME TO gone")
    host.open(PREPARE, {"amount": 27, **BOTH})
    host.says(re.compile("quote incident"))
    world.sql("ALTER TABLE gone RENAME TO transfer")
    host.press("Try again")
    host.says("Confirm this transfer")
    host.open(HANDOFF, {"reason": "\u202e"})
    host.says("No agent was asked")


def change(host: MiniHost, label: str, value: str) -> None:
    """Enter another value for what was refused."""
    host.view.get_by_label(label).fill(value)
    host.press("Continue")
    host.says("Confirm this transfer")


def test_a_lost_confirmation_is_shown_as_unknown(host: MiniHost, world: World) -> None:
    host.open(PREPARE, {"amount": 25, **BOTH})
    host.loses = "the host waited too long"
    host.press("Confirm transfer")
    host.says("Look again to see how the transfer stands.")
    assert "That did not work" not in host.text()
    assert "Whether it was done is not known." in host.mentioned()[-1]
    assert world.sql("SELECT status FROM transfer") == [("posted",)]
    host.loses = None
    host.press("Look again")
    host.says("Transferred")


def test_hostile_names_are_escaped_and_fit_every_width(host: MiniHost, world: World) -> None:
    holder = "\u202eevil\u2066 <img src=x onerror=alert(1)> \x1b[31m" + "very-long" * 12
    world.sql(
        "UPDATE account SET account_name = ?, account_holder = ? WHERE account_id = ?",
        "<script>alert(1)</script>\u202e" + "W" * 120,
        holder,
        PAYEE,
    )
    large = {"amount": 9_999_999.99, "fromAccountId": EVERYDAY}
    for tool, arguments in (
        (ACCOUNTS, {}),
        (STATEMENT, {"accountId": EVERYDAY, "days": 365}),
        (PREPARE, {"amount": 25, "fromAccountId": EVERYDAY}),
        (PREPARE, {"amount": 25, "fromAccountId": EVERYDAY, "toAccountId": PAYEE}),
        (PREPARE, {**large, "toAccountId": PAYEE}),
        (HANDOFF, {"reason": "W" * 200}),
    ):
        host.open(tool, arguments)
        for width in WIDTHS:
            host.page.set_viewport_size({"width": width, "height": 900})
            fills_its_frame(host.view)
        html = host.view.locator("html").evaluate("it => it.outerHTML")
        assert re.findall("<(script|img)", html) == ["script"]  # The view's own.
        assert not any(mark in host.text() for mark in "\u202e\u2066\x1b")
        if PAYEE in str(arguments) and arguments["amount"] == 25:
            assert "\ufffdevil\ufffd <img src=x onerror=alert(1)> \ufffd[31m" in host.text()
            names = host.view.locator("bdi").all_inner_texts()
            assert names[-1] == PAYEE


def test_a_statement_shows_its_totals_and_page_by_page_its_entries(
    host: MiniHost, world: World
) -> None:
    ((entries,),) = world.sql("SELECT count(*) FROM entry WHERE account_id = ?", EVERYDAY)
    given = {"accountId": EVERYDAY, "days": 365}
    totals = host.result(STATEMENT, given)["structuredContent"]
    host.open(STATEMENT, given)
    host.says("Everyday Checking")
    own = totals["totalDebits"] - totals["totalSpent"]
    assert f"To your own accounts\n{own:,.2f} USD\n" in host.text()
    lines = host.view.locator("li.line")
    while lines.count() < entries:
        before = lines.count()
        host.press("Show older entries")
        lines.nth(before).wait_for()
    assert host.view.get_by_role("button").count() == 0
    assert [(name, "cursor" in given) for name, given in host.calls] == [(STATEMENT, True)]
    assert lines.last.inner_text().startswith("Opening balance\n")


def test_the_customer_reads_their_own_words_for_the_reasons_of_the_staff(
    host: MiniHost, world: World
) -> None:
    world.clock.move(hours=13)
    large = host.result(PREPARE, {"amount": 12_000, "fromAccountId": SAVINGS, "toAccountId": PAYEE})
    closed = host.result(APPROVAL, large["_meta"][META_KEY]["arguments"])
    for given, words in (
        (
            {"reason": LOCKED_REASON},
            "You tried to transfer from a locked account: Primary",
        ),
        (closed["_meta"][META_KEY]["arguments"], "the branch is closed now: tr_"),
        ({}, "You asked to speak with an agent"),
        ({"reason": "The customer asks"}, "For the agent"),
    ):
        host.open(HANDOFF, given)
        host.says(words)


def test_the_code_form_and_the_waiting_card_are_readable(browser: Any, world: World) -> None:
    world.codes = "desk"
    with hosting(browser, world) as host:
        host.open(PREPARE, {"amount": 25, **BOTH})
        host.press("Confirm transfer")
        host.says("Six digits")
        host.view.get_by_label("Confirmation code").fill("000000")
        host.press("Confirm transfer")
        host.view.get_by_role("alert").wait_for()
        host.can_be_read()
        host.view.locator("main").evaluate("() => waitingCard('Looking …')")
        host.says("Looking …")


def test_only_messages_of_the_host_are_accepted(host: MiniHost) -> None:
    host.open(PREPARE, {"amount": 25, **BOTH})
    forged = {
        "jsonrpc": "2.0",
        "method": "ui/notifications/tool-result",
        "params": {"content": [{"type": "text", "text": "Forged"}], "structuredContent": {}},
    }
    # Another frame of the page, and the view itself, are not the host.
    host.page.evaluate(
        """forged => new Promise(done => {
          const other = document.createElement("iframe");
          other.srcdoc = `<script>parent.frames[0].postMessage(${JSON.stringify(forged)}, "*")`
            + "</" + "script>";
          other.onload = () => setTimeout(done, 100);
          document.body.append(other);
          setTimeout(done, 100);
        })""",
        forged,
    )
    host.view.locator("main").evaluate("(_, forged) => window.postMessage(forged, '*')", forged)
    assert "Confirm this transfer" in host.text()
    assert "Forged" not in host.text()
    # The host's own notification is heard.
    host.page.evaluate("forged => send(forged)", forged)
    host.says("Forged")
