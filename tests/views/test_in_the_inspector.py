"""The front page's walk in a host that is not ours: the Inspector, behind the proxy.

The picker, the chain to the handoff, a click, and the record in the database. The branch is closed,
so that a large transfer needs an agent at any hour.
"""

import re
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ..bank.support import sql
from ..conformance.node_project import MODULES, missing, node
from ..kit.browser import LACKING, running_browser
from ..kit.command import PATIENCE
from ..kit.servers import free_port, serving_process
from .contrast import too_faint
from .mini_host import fills_its_frame, steps
from .moving_picture import moving_picture

INSPECTOR = "@modelcontextprotocol/inspector"

pytestmark = pytest.mark.needs_program(LACKING or missing(INSPECTOR))

TOKEN = "known"

BANK = """
from banking_server.bank import rules
from banking_server.cli import main
rules.is_branch_open = lambda *_: False
main()
"""

IS_FRAME = "([x, y]) => document.elementFromPoint(x, y)?.tagName === 'IFRAME'"

WALK = {"x": 16, "y": 76, "width": 822, "height": 620}
"""What the pictures show of the page: the list of apps, and the card."""


@contextmanager
def inspector(folder: Path) -> Iterator[str]:
    """Run the Inspector on the proxy and a bank in this folder, and return its address."""
    bank = [sys.executable, "-c", BANK, "--customer=CUST001", f"--database={folder / 'bank.db'}"]
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
        size = {"width": 1280, "height": 900}
        opened = browser.new_page(viewport=size, device_scale_factor=1.5)
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


Pictures = dict[str, list[bytes]]
"""The pictures of the walk in each theme."""


def check(page: Any, view: Any, name: str, walk: Pictures | None = None) -> None:
    """See in each theme that the view can be read, fills its frame and has its buttons in sight.

    Add pictures of it to the walk.
    """
    for scheme in ("light", "dark"):
        view.locator(f":root[style*='color-scheme: {scheme}']").wait_for()
        assert too_faint(view) == {}, (name, scheme)
        fills_its_frame(view)
        are_in_sight(page, view.get_by_role("button"))
        if walk is not None:
            page.mouse.move(0, 0)
            walk[scheme].append(page.screenshot(clip=WALK, animations="disabled"))
        page.get_by_role("button", name="Toggle color scheme").click()


def are_in_sight(page: Any, buttons: Any) -> None:
    """See that the customer finds these buttons without scrolling."""
    for button in buttons.all():
        box = button.bounding_box()
        assert page.evaluate(IS_FRAME, [box["x"], box["y"] + box["height"]]), box


def keep(walk: Pictures, folder: Path) -> None:
    """Keep the walk as a moving picture, and the handoff as a still for who wants no motion."""
    for scheme, pictures in walk.items():
        (folder / f"walk-{scheme}.png").write_bytes(moving_picture(pictures, seconds=3))
        (folder / f"walk-still-{scheme}.png").write_bytes(pictures[1])


def test_the_locked_account_hands_itself_off_and_a_transfer_is_confirmed(
    page: Any, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    walk: Pictures = defaultdict(list)
    view = open_app(page, "250")
    view.get_by_text("Which account should the money come from?").wait_for()
    check(page, view, "picker", walk)

    press(view, "Primary Checking")
    view.get_by_text("is currently locked").wait_for()
    # It was followed: nothing is left to be pressed for that.
    assert steps(view) == [["A request for an agent was opened", "check"]]
    assert view.get_by_role("button", name="Speak to an agent", exact=True).count() == 0
    view.get_by_text("How would you like to be connected?").wait_for()
    check(page, view, "handoff", walk)

    press(view, "Be called back")
    view.get_by_text("Callback requested").wait_for()
    check(page, view, "queue", walk)
    if pictures := request.config.getoption("--pictures"):
        keep(walk, pictures)
    ((handoff_id, choice),) = sql(tmp_path / "bank.db", "SELECT handoff_id, choice FROM handoff")
    assert choice == "callback"
    assert view.get_by_text(handoff_id).is_visible()

    page.get_by_text("Back to Input").click()
    view = open_app(page, "12000")
    press(view, "High Yield Savings")
    press(view, "Rent Payments")
    view.get_by_text("How would you like to be connected?").wait_for()
    assert [words for words, _ in steps(view)] == [
        "A manager was asked to approve",
        "A request for an agent was opened",
    ]
    # The card is higher than the frame, but nobody has to scroll for the choice.
    ways = view.get_by_role("button", name=re.compile("Speak to an agent now|Be called back"))
    assert ways.count() == 2
    are_in_sight(page, ways)

    page.get_by_text("Back to Input").click()
    view = open_app(page, "3000")
    press(view, "High Yield Savings")
    press(view, "Rent Payments")
    view.get_by_text("Confirm this transfer").wait_for()
    check(page, view, "confirmation")
    small = "SELECT status FROM transfer WHERE approval = 'none'"
    assert sql(tmp_path / "bank.db", small) == [("pending",)]
    press(view, "Confirm transfer")
    view.get_by_text("Transferred").wait_for()
    # A payment of this size is reported.
    assert steps(view) == [["The bank's compliance desk was told", "check"]]
    check(page, view, "receipt")
    assert sql(tmp_path / "bank.db", small) == [("posted",)]
    trail = sql(tmp_path / "bank.db", "SELECT tool, outcome FROM audit_event")
    assert ("confirm_in_view", "posted") in trail
    assert ("request_agent_handoff", "handoff_opened") in trail
    assert sql(tmp_path / "bank.db", "SELECT count(*) FROM compliance_report") == [(1,)]
