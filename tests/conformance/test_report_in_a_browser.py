"""The HTML report in a real browser: it shows itself, on its own, on any screen, in any light.

It needs playwright (the extra `[browser]`), and a Chromium: one that is installed, or that of
`tests/node/package.json`.
"""

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from .node_project import MODULES, missing, node
from .support import SHOP
from .test_reports import HOSTILE, Hostile, Reports

INSTALLED = shutil.which("chromium") or shutil.which("google-chrome")
LACKING: str | None = "playwright is not installed: pip install '.[browser]'"
if importlib.util.find_spec("playwright"):
    LACKING = None if INSTALLED else missing("@sparticuz/chromium")
pytestmark = pytest.mark.needs_program(LACKING)

UNPACK = (
    "import('@sparticuz/chromium').then(async it => console.log(await it.default.executablePath()))"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with TemporaryDirectory(prefix="banking-server-browser-") as folder:
        program = INSTALLED
        if program is None:
            unpacked = subprocess.run(
                [str(node()), "-e", UNPACK],
                cwd=MODULES.parent,
                env={**os.environ, "TMPDIR": folder},
                capture_output=True,
                text=True,
                check=True,
            )
            program = unpacked.stdout.strip()
        with sync_playwright() as playwright:
            started = playwright.chromium.launch(
                executable_path=program, args=["--no-sandbox", "--no-zygote", "--disable-gpu"]
            )
            yield started
            started.close()


def opened(browser: Any, path: Path, **how: Any) -> Any:
    """Open a report as a person does who was sent the file, and is on a train."""
    page = browser.new_page(**how)
    page.noted = []
    page.on("request", lambda request: page.noted.append(request.url))
    page.on("console", lambda message: page.noted.append(message.text))
    page.on("pageerror", lambda error: page.noted.append(str(error)))
    page.context.set_offline(True)
    page.goto(path.as_uri())
    return page


def contrast(page: Any) -> float:
    """The smallest contrast of any text with what is behind it, as WCAG counts it."""
    return float(page.evaluate(CONTRAST))


CONTRAST = """() => {
  const numbers = colour => colour.match(/[\\d.]+/g).map(Number);
  const light = rgb => {
    const [r, g, b] = rgb.slice(0, 3).map(v => v / 255).map(
      v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const behind = node => {
    for (; node; node = node.parentElement) {
      const colour = numbers(getComputedStyle(node).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  let least = 21;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !node.checkVisibility()) continue;
    const pair = [light(numbers(getComputedStyle(node).color)), light(behind(node))];
    pair.sort((a, b) => b - a);
    least = Math.min(least, (pair[0] + .05) / (pair[1] + .05));
  }
  return least;
}"""


def test_a_report_is_read_in_a_browser(browser: Any, tmp_path: Path) -> None:
    reports = Reports(tmp_path, Hostile(), "--scenario", SHOP)
    path = tmp_path / "report.html"
    for scheme in ("light", "dark"):
        for width in (400, 1200):
            size = {"width": width, "height": 900}
            page = opened(browser, path, viewport=size, color_scheme=scheme)
            assert page.noted == [path.as_uri()]  # Nothing was fetched, nothing ran.
            assert page.evaluate("window.hit") is None
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert contrast(page) >= 4.5, scheme
            page.close()
    page = opened(browser, path)
    assert page.locator("h1").inner_text() == "shop 1 is not conformant"
    assert "Not exercised" in page.locator("header.top").inner_text()
    article = page.locator("article", has_text="tool-chaining-server-names-listed-tool").first
    for words in ("Servers MUST name only a tool", "What to change", "Expected", "Seen"):
        assert words in article.inner_text()
    marked = article.locator("mark")
    assert marked.count() == article.locator(".place").count() >= 2  # A line at each place.
    assert HOSTILE.partition("\u202e")[0] in marked.first.inner_text()
    assert reports.report["verdict"] == "nonconformant"
    headings = page.get_by_role("heading").all_inner_texts()
    assert headings[1:3] == ["What was exercised, and what was not", "Failures"]
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.url.endswith("#main")  # The skip link comes first.
    details = page.locator("#all ~ table details").first
    details.locator("summary").focus()
    page.keyboard.press("Enter")
    assert details.get_attribute("open") is not None
    page.close()
