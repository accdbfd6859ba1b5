"""A small host of MCP Apps in a real browser, on a real bank: shows a view, makes its calls."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client
from mcp.client import advertise
from mcp.server.apps import APP_MIME_TYPE, EXTENSION_ID
from mcp.types import CallToolResult

from tool_chaining import CLIENT_EXTENSION, IDENTIFIER, META_KEY
from tool_chaining.content import on_the_wire

from ..kit.bank import Clock, World
from .contrast import too_faint

SHOWS_VIEWS = advertise(EXTENSION_ID, {"mimeTypes": [APP_MIME_TYPE]})
"""Passed among a client's extensions, this declares that it shows views."""

WITHOUT_CURRENCY = re.compile(r"\d\.\d\d\b(?! [A-Z]{3}\b|, in the account's currency)")
"""An amount of money with nothing beside it."""

FILLS_ITS_FRAME = """() => {
  const { clientWidth, clientHeight } = document.documentElement;
  const ground = getComputedStyle(document.documentElement).backgroundColor;
  return clientWidth === innerWidth && clientHeight === innerHeight && !/, 0\\)$/.test(ground);
}"""

WIDTHS = """rows => rows.map(({ children }) =>
  new Set([...children].map(each => Math.round(each.getBoundingClientRect().width))).size)"""

STEPS = """lines => lines.map(line => {
  const drawn = line.querySelector("path").getAttribute("d");
  return [line.innerText, Object.keys(ICONS).find(name => ICONS[name] === drawn)];
})"""

CHANGE = "params => send({ method: 'ui/notifications/host-context-changed', params })"

PAGE = (Path(__file__).parent / "host.html").read_text(encoding="utf-8")
ADDRESS = "https://host.example/"


def fills_its_frame(view: Any) -> None:
    """Wait until the card is as large as the host's frame: no scrollbar, and no corner of another
    colour.
    """
    view.owner.element_handle().content_frame().wait_for_function(FILLS_ITS_FRAME)


def steps(view: Any) -> list[list[str]]:
    """The calls that a card says were made without the customer: the words and the icon of each."""
    view.locator(".steps li").first.wait_for()
    shown: list[list[str]] = view.locator(".steps li").evaluate_all(STEPS)
    return shown


class MiniHost:
    """One page with one view. `calls` are those that the view has made."""

    def __init__(self, browser: Any, portal: BlockingPortal, client: Client, clock: Clock) -> None:
        self.client = client
        self.portal = portal
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.complaints: list[str] = []
        self.failing: str | None = None
        """What every call fails with, if the host cannot make any."""
        self.loses: str | None = None
        """What every call fails with after it was made, if the host loses the answers."""
        self.page = browser.new_page()
        self.page.set_default_timeout(20_000)
        self.page.route("**/*", self._fetch)
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.expose_function("call_tool", self._call)
        self.page.clock.install(time=clock.now)
        self.page.goto(ADDRESS)
        self.view = self.page.frame_locator("#view")

    def _fetch(self, route: Any) -> None:
        """Serve the host's own page; a view has nothing to fetch."""
        if route.request.url == ADDRESS:
            route.fulfill(body=PAGE, content_type="text/html")
        else:
            self.complaints.append(route.request.url)
            route.abort()

    def _call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        self.calls.append((name, arguments))
        if self.failing is not None:
            return {"error": self.failing}
        result = self.result(name, arguments)
        return result if self.loses is None else {"error": self.loses}

    def result(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call a tool, and return its result as a view gets it."""
        result = self.portal.call(self.client.call_tool, name, arguments)
        assert isinstance(result, CallToolResult)
        return on_the_wire(result)

    def open(
        self, tool: str, arguments: dict[str, Any], followed: dict[str, Any] | None = None
    ) -> None:
        """Call a tool and show its view; `followed` is what a proxy tells of the chain."""
        result = self.result(tool, arguments)
        if followed is not None:
            others = {key: value for key, value in result["_meta"].items() if key != META_KEY}
            result["_meta"] = {**others, IDENTIFIER: followed}
        shown = {
            "html": self._document(tool),
            "input": arguments,
            "result": result,
            "context": {"locale": "en-GB", "timeZone": "UTC"},
            "capabilities": {"serverTools": {}, "updateModelContext": {"text": {}}},
        }
        self.page.evaluate("shown => open_view(shown)", shown)
        self.view.locator("main[aria-busy=false]").wait_for()

    def _document(self, tool: str) -> str:
        listed = self.portal.call(self.client.list_tools).tools
        (uri,) = [one.meta["ui"]["resourceUri"] for one in listed if one.name == tool and one.meta]
        (content,) = self.portal.call(self.client.read_resource, uri).contents
        return str(content.text)

    def says(self, words: str | re.Pattern[str]) -> None:
        """Wait until the view says this, and see that all of the card is as it should be."""
        self.view.get_by_text(words).first.wait_for()
        self.can_be_read()
        fills_its_frame(self.view)
        assert WITHOUT_CURRENCY.search(self.text()) is None, self.text()
        assert set(self.view.locator(".row").evaluate_all(WIDTHS)) <= {1}, "unequal buttons"

    def can_be_read(self) -> None:
        """Check the contrast in both themes."""
        for theme in ("light", "dark"):
            self.page.evaluate(CHANGE, {"theme": theme})
            self.view.locator(f":root[style*='color-scheme: {theme}']").wait_for(state="attached")
            faint = too_faint(self.view)
            assert faint == {}, (theme, faint)

    def press(self, words: str) -> None:
        self.view.get_by_role("button", name=re.compile(re.escape(words))).click()

    def text(self) -> str:
        return str(self.view.locator("main").inner_text())

    def mentioned(self) -> list[str]:
        """What the view told the model."""
        heard = self.page.evaluate("heard")
        told = [one for one in heard if one.get("method") == "ui/update-model-context"]
        return [one["params"]["content"][0]["text"] for one in told]


@contextmanager
def hosting(browser: Any, world: World) -> Iterator[MiniHost]:
    """Connect a client that shows views, and open the page of its host."""
    with start_blocking_portal() as portal:
        client = Client(world.server(), extensions=[SHOWS_VIEWS, CLIENT_EXTENSION])
        with portal.wrap_async_context_manager(client):
            host = MiniHost(browser, portal, client, world.clock)
            yield host
            host.page.close()
            assert host.complaints == []
