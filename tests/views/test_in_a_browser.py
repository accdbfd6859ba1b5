"""The views in a real browser, in a small host, on a real bank: the states that they show."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from banking_server.bank.handoffs import claim_handoff

from ..kit.bank import World, copy_of, open_bank
from ..kit.browser import LACKING, running_browser
from ..kit.words import (
    ACCOUNTS,
    EVERYDAY,
    HANDOFF,
    LOCKED,
    LOCKED_REASON,
    PAYEE,
    PREPARE,
    SAVINGS,
)
from .mini_host import MiniHost, hosting

pytestmark = pytest.mark.needs_program(LACKING)

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
    assert "You want to move 250.00." in host.text()
    assert "5,250.75 USD" in host.text()
    everyday = host.view.get_by_role("button", name="Everyday Checking")
    everyday.focus()
    host.page.keyboard.press("Enter")
    host.says("Where should the money go?")
    assert focused(host) == "Where should the money go?"
    host.view.get_by_role("button", name="High Yield Savings").focus()
    host.page.keyboard.press("Space")
    host.says("Confirm this transfer")
    assert "<img src=x onerror=alert(1)>" in host.text()
    assert "2 Mar 2026, 10:10 (in 10 minutes)" in host.text()
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
    assert host.calls == [(HANDOFF, {"reason": LOCKED_REASON})]
    host.press("Be called back")
    host.says("An agent will call you back.")
    host.press("Speak to an agent now instead")
    host.says("as soon as one is free")
    ((handoff_id, choice),) = world.sql("SELECT handoff_id, choice FROM handoff")
    assert choice == "realtime"

    host.page.clock.fast_forward(6_000)
    claim(host, world, handoff_id)
    host.page.clock.fast_forward(40_000)
    host.says("An agent has taken it")
    looked = len(host.calls)
    host.page.clock.fast_forward(3_600_000)
    assert len(host.calls) == looked
    assert "An agent has taken it." in host.view.get_by_role("status").inner_text()


def claim(host: MiniHost, world: World, handoff_id: str) -> None:
    async def claimed() -> None:
        bank = await open_bank(world.location, world.clock())
        try:
            await claim_handoff(bank, handoff_id, agent="Sam", now=world.clock())
        finally:
            await bank.close()

    host.portal.call(claimed)


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
    host.says("A manager has been asked")
    check_again(host)
    host.says("A manager has been asked")
    assert host.view.get_by_role("button", name="Ask a manager").count() == 0
    host.portal.call(world.decide)
    # Nobody has to ask: it is looked at now and then.
    host.page.clock.fast_forward(6_000)
    host.says("Confirm this transfer")
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


def test_what_is_not_confirmed_in_time_can_be_prepared_again(host: MiniHost, world: World) -> None:
    host.open(PREPARE, {"amount": 25, **BOTH})
    world.clock.move(minutes=11)
    host.page.clock.fast_forward(660_000)
    host.says("Not confirmed in time")
    assert host.calls[-1][0] == "look_at_transfer"
    host.open(PREPARE, {"amount": 26, **BOTH})
    world.clock.move(minutes=11)
    host.press("Confirm transfer")
    host.says("Not confirmed in time")
    host.press("Prepare it again")
    host.says("Confirm this transfer")
    host.press("Cancel transfer")
    host.says("Cancelled")
    assert "No money was moved." in host.text()
    assert world.sql("SELECT status FROM transfer ORDER BY created_at") == [
        ("pending",),
        ("expired",),
        ("voided",),
    ]


def test_what_goes_wrong_is_said(host: MiniHost, world: World) -> None:
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
    # What cannot be paid from this account may be from another.
    host.open(PREPARE, {"amount": 9_999, **BOTH})
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


def test_a_yes_without_an_answer_may_have_been_heard(host: MiniHost, world: World) -> None:
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


def test_what_others_have_named_hides_and_turns_nothing(host: MiniHost, world: World) -> None:
    holder = "\u202eevil\u2066 <img src=x onerror=alert(1)> \x1b[31m" + "very-long" * 12
    world.sql(
        "UPDATE account SET account_name = ?, account_holder = ? WHERE account_id = ?",
        "<script>alert(1)</script>\u202e" + "W" * 120,
        holder,
        PAYEE,
    )
    large = {"amount": 9_999_999.99, "fromAccountId": EVERYDAY}
    host.page.set_viewport_size({"width": 280, "height": 900})
    for tool, arguments in (
        (ACCOUNTS, {}),
        (PREPARE, {"amount": 25, "fromAccountId": EVERYDAY}),
        (PREPARE, {"amount": 25, "fromAccountId": EVERYDAY, "toAccountId": PAYEE}),
        (PREPARE, {**large, "toAccountId": PAYEE}),
        (HANDOFF, {"reason": "W" * 200}),
    ):
        host.open(tool, arguments)
        shown = host.view.locator("html").evaluate(
            "it => [it.scrollWidth - it.clientWidth, it.outerHTML.match(/<(script|img)/g)?.length,"
            " document.querySelector('main').innerText]"
        )
        assert shown[0] <= 0, (tool, arguments)
        assert shown[1] == 1  # The view's own script.
        assert not any(mark in shown[2] for mark in "\u202e\u2066\x1b")
        if PAYEE in str(arguments) and arguments["amount"] == 25:
            assert "\ufffdevil\ufffd <img src=x onerror=alert(1)> \ufffd[31m" in shown[2]
            names = host.view.locator("bdi").all_inner_texts()
            assert names[-1] == PAYEE


CONTRAST = """root => {
  const rgba = text => {
    const numbers = text.match(/[\\d.]+/g).map(Number);
    const scale = text.startsWith("color(") ? 255 : 1;
    return [...numbers.slice(0, 3).map(value => value * scale), numbers[3] ?? 1];
  };
  const over = (top, under) =>
    under.map((value, at) => top[at] * top[3] + value * (1 - top[3]));
  const behind = node => node
    ? over(rgba(getComputedStyle(node).backgroundColor), behind(node.parentElement))
    : [255, 255, 255];
  const light = rgb => {
    const [r, g, b] = rgb.map(value => value / 255).map(
      value => value <= .04045 ? value / 12.92 : ((value + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const found = {};
  while (walker.nextNode()) {
    const [text, node] = [walker.currentNode.data.trim(), walker.currentNode.parentElement];
    if (!text || !node.checkVisibility()) continue;
    const under = behind(node);
    const pair = [light(over(rgba(getComputedStyle(node).color), under)), light(under)];
    found[text] = (Math.max(...pair) + .05) / (Math.min(...pair) + .05);
  }
  return found;
}"""
"""The contrast of each text with what is behind it, as WCAG counts it."""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_can_be_told_from_what_is_behind_it(host: MiniHost, theme: str) -> None:
    for arguments in ({"amount": 250}, {"amount": 250, **BOTH}):
        host.open(PREPARE, arguments, theme=theme)
        found = host.view.locator("body").evaluate(CONTRAST)
        assert {text: one for text, one in found.items() if one < 4.5} == {}
    assert "Confirm transfer" in found


def test_nobody_but_the_host_is_listened_to(host: MiniHost) -> None:
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
    # What is no message of the protocol is passed over.
    for odd in (None, 1, {"jsonrpc": "1.0"}, {"jsonrpc": "2.0", "id": 99, "result": {}}):
        host.page.evaluate("odd => frame.contentWindow.postMessage(odd, '*')", odd)
    assert "Forged" not in host.text()
    # The host's own notification is heard.
    host.page.evaluate("forged => send(forged)", forged)
    host.says("Forged")
