"""The MCP Inspector, unmodified, as a host of MCP Apps in a real browser."""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..conformance.node_project import MODULES, node
from ..kit.command import PATIENCE, command, environment
from ..kit.servers import free_port

INSPECTOR = "@modelcontextprotocol/inspector"


@contextmanager
def inspector(folder: Path, *, proxied: bool) -> Iterator[str]:
    """Run the Inspector on a bank in this folder, and return its address."""
    bank = command("--customer", "CUST001", "--database", str(folder / "bank.db"))
    proxy = [sys.executable, "-m", "banking_server.proxy", "--trust-hints"] if proxied else []
    program = MODULES / INSPECTOR / "clients" / "launcher" / "build" / "index.js"
    log = folder / "inspector.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [str(node()), str(program), "--web", *proxy, *bank],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env=environment(
                HOME=str(folder),
                CLIENT_PORT=str(free_port()),
                MCP_SANDBOX_PORT=str(free_port()),
                MCP_AUTO_OPEN_ENABLED="false",
            ),
        )
    try:
        yield address(process, log)
    finally:
        process.terminate()
        process.wait(PATIENCE)


def address(process: subprocess.Popen[bytes], log: Path) -> str:
    """Wait until the Inspector says where it is."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        said = re.search(r"http://\S+MCP_INSPECTOR_API_TOKEN=\w+", log.read_text("utf-8"))
        if said:
            return said.group()
        assert process.poll() is None, log.read_text("utf-8")
        time.sleep(0.1)
    raise AssertionError(log.read_text("utf-8"))


def connected(browser: Any, url: str, **page: Any) -> Any:
    """Open the Inspector's page, connect, and go to its apps."""
    opened = browser.new_page(**page)
    opened.set_default_timeout(PATIENCE * 1000)
    opened.goto(url)
    switch, apps = opened.get_by_role("switch").first, opened.get_by_text("Apps", exact=True).first
    switch.wait_for()
    end = time.monotonic() + 3 * PATIENCE
    while not apps.is_visible() and time.monotonic() < end:
        # It is on while it connects, and off again if that took the Inspector too long.
        if not switch.is_checked():
            switch.press("Space")
        opened.wait_for_timeout(200)
    apps.click()
    return opened


def open_app(page: Any, title: str, **arguments: str) -> Any:
    """Let the Inspector call a tool by its title, and return the view that it shows."""
    page.get_by_text(title, exact=True).first.click()
    for label, value in arguments.items():
        page.get_by_label(label).first.fill(value)
    page.get_by_role("button", name="Open App").click()
    return page.frame_locator("iframe").frame_locator("iframe")
