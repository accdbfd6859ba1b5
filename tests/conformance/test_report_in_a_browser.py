"""The HTML report in a real browser: it shows itself, on its own, on any screen, in any light."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ..kit.browser import LACKING, contrast, running_browser
from .support import SHOP
from .test_reports import HOSTILE, Hostile, Reports

pytestmark = pytest.mark.needs_program(LACKING)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with running_browser() as started:
        yield started


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
