"""The front page's walk in a host that is not ours: the Inspector, behind the proxy.

The picker, the chain to the handoff, a click, and the record in the database.
"""

import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ..bank.support import sql
from ..conformance.node_project import MODULES, missing, node
from ..kit.browser import LACKING, running_browser
from ..kit.command import PATIENCE, command
from ..kit.servers import free_port, serving_process
from .contrast import too_faint
from .mini_host import fills_its_frame, steps

INSPECTOR = "@modelcontextprotocol/inspector"

pytestmark = pytest.mark.needs_program(LACKING or missing(INSPECTOR))

TOKEN = "known"


@contextmanager
def inspector(folder: Path) -> Iterator[str]:
    """Run the Inspector on the proxy and a bank in this folder, and return its address."""
    bank = command("--customer", "CUST001", "--database", str(folder / "bank.db"))
    proxy = [sys.executable, "-m", "tool_chaining_proxy", "--trust-hints", "--"]
    program = MODULES / INSPECTOR / "clients" / "launcher" / "build" / "index.js"
    port = free_port()
    variables = {
        "HOME": str(folder),
        "CLIENT_PORT": str(port),
        "MCP_SANDBOX_PORT": str(free_port()),
        "MCP_AUTO_OPEN_ENABLED": "false",
        "MCP_INSPECTOR_API_TOKEN": TOKEN,
    }
    with serving_process([str(node()), str(program), "--web", *proxy, *bank], port, **variables):
        yield f"http://localhost:{port}/?MCP_INSPECTOR_API_TOKEN={TOKEN}"


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Any]:
    """The Inspector's page, connected, with the tab of its apps open."""
    with running_browser() as browser, inspector(tmp_path) as url:
        size = {"width": 1300, "height": 1000}
        opened = browser.new_page(viewport=size, device_scale_factor=2)
        opened.set_default_timeout(PATIENCE * 1000)
        opened.goto(url)
        switch = opened.get_by_role("switch").first
        apps = opened.get_by_text("Apps", exact=True).first
        switch.wait_for()
        end = time.monotonic() + 3 * PATIENCE
        while not apps.is_visible() and time.monotonic() < end:
            # It is on while it connects, and off again if that took the Inspector too long.
            if not switch.is_checked():
                switch.press("Space")
            opened.wait_for_timeout(200)
        apps.click()
        yield opened


def open_app(page: Any, amount: str) -> Any:
    """Let the Inspector prepare a transfer without accounts, and return the view that it shows."""
    page.get_by_text("Prepare Money Transfer", exact=True).first.click()
    page.get_by_label("Amount").first.fill(amount)
    page.get_by_role("button", name="Open App").click()
    return page.frame_locator("iframe").frame_locator("iframe")


def press(view: Any, words: str) -> None:
    view.get_by_role("button", name=re.compile(re.escape(words))).click()


def check(page: Any, view: Any, name: str, folder: Path | None = None) -> None:
    """See that the view can be read and fills its frame in each theme; keep pictures of it and the
    line above it.
    """
    for scheme in ("light", "dark"):
        view.locator(f":root[style*='color-scheme: {scheme}']").wait_for()
        assert too_faint(view) == {}, (name, scheme)
        fills_its_frame(view)
        if folder is not None:
            card = view.locator(".card").bounding_box()
            clip = {
                "x": card["x"] - 20,
                "y": card["y"] - 66,
                "width": card["width"] + 40,
                "height": card["height"] + 86,
            }
            picture = folder / f"view-{name}-{scheme}.png"
            page.screenshot(path=picture, clip=clip, animations="disabled")
        page.get_by_role("button", name="Toggle color scheme").click()


def test_the_locked_account_hands_itself_off_and_a_transfer_is_confirmed(
    page: Any, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    pictures = request.config.getoption("--pictures")
    view = open_app(page, "250")
    view.get_by_text("Which account should the money come from?").wait_for()
    check(page, view, "picker", pictures)

    press(view, "Primary Checking")
    view.get_by_text("is currently locked").wait_for()
    # It was followed: nothing is left to be pressed for that.
    assert steps(view) == [["An agent was asked to help", "check"]]
    assert view.get_by_role("button", name="Speak to an agent", exact=True).count() == 0
    for way in ("Speak to an agent now", "Be called back"):
        view.get_by_role("button", name=way).wait_for()
    assert view.get_by_text("nextTool → request_agent_handoff").count() == 1
    check(page, view, "handoff", pictures)

    press(view, "Be called back")
    view.get_by_text("Callback requested").wait_for()
    check(page, view, "queue")
    ((handoff_id, choice),) = sql(tmp_path / "bank.db", "SELECT handoff_id, choice FROM handoff")
    assert choice == "callback"
    assert view.get_by_text(handoff_id).is_visible()

    page.get_by_text("Back to Input").click()
    view = open_app(page, "3000")
    press(view, "High Yield Savings")
    press(view, "Rent Payments")
    view.get_by_text("Confirm this transfer").wait_for()
    check(page, view, "confirmation")
    assert sql(tmp_path / "bank.db", "SELECT status FROM transfer") == [("pending",)]
    press(view, "Confirm transfer")
    view.get_by_text("Transferred").wait_for()
    # A payment of this size is reported.
    assert steps(view) == [["The bank's compliance desk was told", "check"]]
    check(page, view, "receipt")
    assert sql(tmp_path / "bank.db", "SELECT status FROM transfer") == [("posted",)]
    trail = sql(tmp_path / "bank.db", "SELECT tool, outcome FROM audit_event")
    assert ("confirm_in_view", "posted") in trail
    assert ("request_agent_handoff", "handoff_opened") in trail
    assert sql(tmp_path / "bank.db", "SELECT count(*) FROM compliance_report") == [(1,)]
