"""The proof in a host that is not ours: the Inspector shows the views, alone and behind the proxy.

The picker, the chain to the handoff, a click, and the record in the database.
"""

import re
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ..conformance.node_project import missing
from ..kit.browser import LACKING, running_browser
from ..kit.command import PATIENCE, command, environment
from .inspector import INSPECTOR, connected, inspector, open_app

pytestmark = [pytest.mark.needs_program(LACKING or missing(INSPECTOR)), pytest.mark.nightly]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with running_browser() as started:
        yield started


@pytest.fixture(params=[False, True], ids=["the bank", "through the proxy"])
def proxied(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def page(browser: Any, tmp_path: Path, proxied: bool) -> Iterator[Any]:
    with inspector(tmp_path, proxied=proxied) as url:
        size = {"width": 1300, "height": 1000}
        opened = connected(browser, url, viewport=size, device_scale_factor=2)
        yield opened
        opened.close()


def rows(folder: Path, question: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(folder / "bank.db") as connection:
        return connection.execute(question).fetchall()


def press(view: Any, words: str) -> None:
    view.get_by_role("button", name=re.compile(re.escape(words))).click()


def draw(page: Any, view: Any, folder: Path | None, name: str) -> None:
    """Keep a picture of the view and of the Inspector's line above it, in each light."""
    if folder is None:
        return
    for scheme in ("light", "dark"):
        view.locator(f"body[style*='color-scheme: {scheme}']").wait_for()
        card = view.locator(".card").bounding_box()
        clip = {
            "x": card["x"] - 22,
            "y": card["y"] - 68,
            "width": card["width"] + 44,
            "height": card["height"] + 90,
        }
        page.screenshot(path=folder / f"view-{name}-{scheme}.png", clip=clip, animations="disabled")
        page.get_by_role("button", name="Toggle color scheme").click()


def test_the_locked_account_hands_itself_off_and_a_transfer_is_confirmed(
    page: Any, tmp_path: Path, proxied: bool, request: pytest.FixtureRequest
) -> None:
    pictures = request.config.getoption("--pictures") if proxied else None
    view = open_app(page, "Prepare Money Transfer", Amount="250")
    view.get_by_text("Which account should the money come from?").wait_for()
    draw(page, view, pictures, "picker")

    press(view, "Primary Checking")
    view.get_by_text("is currently locked").wait_for()
    if proxied:
        # It was followed: nothing is left to be pressed for that.
        view.get_by_text("An agent was asked to help").wait_for()
        assert view.get_by_role("button", name="Speak to an agent", exact=True).count() == 0
    else:
        assert rows(tmp_path, "SELECT count(*) FROM handoff") == [(0,)]
        view.get_by_role("button", name="Speak to an agent", exact=True).click()
    view.get_by_text("How would you like to be connected?").wait_for()
    draw(page, view, pictures, "handoff")

    press(view, "Be called back")
    view.get_by_text("You are in the queue").wait_for()
    ((handoff_id, choice, reason),) = rows(
        tmp_path, "SELECT handoff_id, choice, reason FROM handoff"
    )
    assert choice == "callback"
    assert "acc_checking_001" in reason
    assert view.get_by_text(handoff_id).is_visible()

    database = ("--database", str(tmp_path / "bank.db"))
    claim = command(*database, "handoffs", "claim", handoff_id, "--agent", "Sam")
    subprocess.run(claim, check=True, timeout=PATIENCE, env=environment(), capture_output=True)
    view.get_by_text("An agent has taken it").first.wait_for()

    page.get_by_text("Back to Input").click()
    view = open_app(page, "Prepare Money Transfer", Amount="250")
    press(view, "Everyday Checking")
    press(view, "High Yield Savings")
    view.get_by_text("Confirm this transfer").wait_for()
    assert rows(tmp_path, "SELECT status FROM transfer") == [("pending",)]
    press(view, "Confirm transfer")
    view.get_by_text("Transferred").wait_for()
    assert rows(tmp_path, "SELECT status FROM transfer") == [("posted",)]
    trail = rows(tmp_path, "SELECT tool, outcome FROM audit_event")
    assert ("confirm_in_view", "posted") in trail
    assert ("request_agent_handoff", "handoff_opened") in trail
