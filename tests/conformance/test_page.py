"""The HTML page of reports: what it shows, and what a hostile report cannot make of it."""

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tool_chaining_conformance.report.json import report_json
from tool_chaining_conformance.report.redaction import Redaction
from tool_chaining_conformance.report.report import Report
from tool_chaining_conformance.target.era import Era

from ..kit.browser import LACKING, running_browser
from ..views.contrast import too_faint
from .support import SHOP, examine_client, serving, suite
from .test_reports import LISTED, WrongInTwoSteps

in_a_browser = pytest.mark.needs_program(LACKING)

HOSTILE = (
    """</script></style></pre>"><img src=x onerror="window.hit=1"><script>window.hit=1</script>"""
    "<a href='javascript:window.hit=1'>[x](javascript:window.hit=1)</a>{{ 7 * 7 }}\u202e\x1b"
)


@pytest.fixture(scope="module")
def server() -> Any:
    """The report on a server that breaks one sentence."""
    with serving(WrongInTwoSteps()) as url:
        return suite("server", "--url", url, "--scenario", SHOP, "--json").report


@pytest.fixture(scope="module")
def client() -> Any:
    """The report on a client, in two cases."""
    cases = frozenset({"follow/exact-arguments", "follow/error-result"})
    run = examine_client(eras=[Era.MODERN], only=cases)
    return json.loads(report_json(Report.on(run, {"command": ["small", "client"]}, Redaction())))


@pytest.fixture
def page(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that makes the page of these reports with the command."""

    def made(**reports: Any) -> Path:
        words = []
        for name, report in reports.items():
            file = tmp_path / f"{name}.json"
            file.write_text(json.dumps(report), encoding="utf-8")
            words.append(f"{name}={file}" if name[0].isupper() else str(file))
        ended = suite("report", *words, "--output", tmp_path / "page.html")
        assert ended.code == 0, ended.errors
        return tmp_path / "page.html"

    return made


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with running_browser() as started:
        yield started


class Opened:
    """A page in a browser, and everything that it asked for or complained about."""

    def __init__(self, browser: Any, file: Path, **options: Any) -> None:
        self.view = browser.new_page(**options)
        self.noticed: list[str] = []
        self.view.on("console", lambda message: self.noticed.append(message.text))
        self.view.on("request", lambda request: self.noticed.append(request.url))
        self.view.goto(file.as_uri())
        self.noticed.remove(file.as_uri())


@in_a_browser
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_a_click_on_a_sentence_shows_what_each_implementation_did(
    browser: Any, page: Callable[..., Path], server: Any, client: Any, theme: str, width: int
) -> None:
    file = page(Shop=server, client=client)
    opened = Opened(browser, file, color_scheme=theme, viewport={"width": width, "height": 800})
    view = opened.view
    shop, other = view.locator(".card").all()
    assert "✗ nonconformant" in shop.inner_text()
    assert "13 sentences passed" in shop.inner_text().replace("\n", " ")
    assert "small-client" in other.inner_text()
    row = view.locator("#TC-S-12")
    assert row.locator("summary .sign").inner_text().startswith("✗")
    assert not row.get_by_text("x-place_order", exact=True).first.is_visible()
    row.locator("> summary").click()
    row.locator(".messages > summary").first.click()
    shown = row.inner_text()
    for said in ("Shop", "large-order", "a tool of tools/list", "x-place_order", '"nextTool": {'):
        assert said in shown
    (check,) = [one for one in server["checks"] if one["id"] == LISTED][:1]
    assert check["remedy"] in shown
    assert too_faint(view) == {}
    assert view.evaluate("getComputedStyle(document.body).marginTop") == "0px"
    assert opened.noticed == []


@in_a_browser
def test_a_link_to_a_failure_opens_it(browser: Any, page: Callable[..., Path], server: Any) -> None:
    view = Opened(browser, page(shop=server)).view
    view.get_by_role("link", name="✗ TC-S-12").click()
    assert view.locator("#TC-S-12-0").is_visible()


def hostile(value: Any, *, name: str = "") -> Any:
    """Return a report with the text in every place where the schema allows any text."""
    kept = ("id", "status", "spec_version", "spec_versions", "requirements", "extension", "side")
    if isinstance(value, dict):
        own = {HOSTILE: HOSTILE} if name == "message" else {}
        return own | {key: hostile(each, name=key) for key, each in value.items()}
    if isinstance(value, list):
        return [hostile(each, name=name) for each in value]
    fixed = name in (*kept, "verdict", "from", "reads", "started", "finished")
    return value if fixed or not isinstance(value, str) else HOSTILE


@in_a_browser
def test_no_text_of_a_report_becomes_a_part_of_the_page(
    browser: Any, page: Callable[..., Path], server: Any, client: Any
) -> None:
    reports = [hostile(report) for report in (server, client)]
    reports[0]["problems"] = [HOSTILE]
    huge = {"id": 1, "result": {"text": "x" * 2_000_000}}
    for check in reports[0]["checks"]:
        for judgement in check["judgements"]:
            for message in judgement.get("messages", ())[:1]:
                message["message"] |= huge
    file = page(server=reports[0], client=reports[1])
    html = file.read_text(encoding="utf-8")
    assert len(html) < 1_000_000
    assert not {"\u202e", "\x1b"} & {*html}
    opened = Opened(browser, file)
    view = opened.view
    assert view.locator("script, img, iframe, link, form, a:not([href^='#'])").count() == 0
    view.locator("details").evaluate_all("all => all.forEach(one => { one.open = true; })")
    shown = view.locator("main").inner_text()
    assert shown.count("<script>window.hit=1</script>") > 100
    assert "{{ 7 * 7 }}" in shown
    assert re.search(r"… \(2,\d{3},\d{3} characters\)", shown)
    assert view.evaluate("window.hit") is None
    assert opened.noticed == []


@in_a_browser
def test_the_policy_forbids_whatever_would_get_through(
    browser: Any, page: Callable[..., Path], server: Any
) -> None:
    file = page(shop=server)
    written = (
        '<script>window.hit=1</script><img src="http://127.0.0.1:9/x" onerror="window.hit=1">'
        '<style>main { display: none }</style><p style="color: red">'
    )
    html = file.read_text(encoding="utf-8").replace("<main>", f"{written}<main>")
    file.write_text(html, encoding="utf-8")
    opened = Opened(browser, file)
    assert opened.view.evaluate("window.hit") is None
    assert opened.view.locator("main").is_visible()
    assert len([one for one in opened.noticed if "Content Security Policy" in one]) >= 4


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ("not a report", "is not JSON: Expecting value"),
        ("[]", "the report: [] is not of type"),
        ("[" * 100_000, "is not JSON: maximum recursion depth"),
        ({"schema_version": 3}, "schema_version: 2 was expected. If another version wrote it, "),
        ({"side": "both"}, 'side: "both" is not one of '),
        ({HOSTILE: 1}, "the report: Additional properties are not allowed"),
        ({"checks": [{"id": "x"}]}, "checks/0: "),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_file_that_is_no_report_is_refused_in_a_line(
    tmp_path: Path, server: Any, change: Any, complaint: str
) -> None:
    file = tmp_path / "a.json"
    file.write_text(change if isinstance(change, str) else json.dumps(server | change))
    ended = suite("report", file, "--output", tmp_path / "page.html")
    assert ended.code == 2
    (line,) = ended.errors.splitlines()
    assert line.startswith(f"tool-chaining-conformance: {file}: ")
    assert complaint in line
    assert len(line) < 600
    assert not (tmp_path / "page.html").exists()


def test_each_run_writes_the_page_that_its_report_makes(tmp_path: Path) -> None:
    program = tmp_path / "client.py"
    program.write_text("print('{}')")
    only = ("--scenario", "follow/exact-arguments", "--spec-version", Era.MODERN)
    files = ("--html", tmp_path / "html" / "run.html", "-o", tmp_path)
    suite("client", *only, *files, "--", sys.executable, program)
    ended = suite("report", tmp_path / "report.json", "--output", tmp_path / "report.html")
    assert ended.code == 0
    run, report = (tmp_path / name for name in ("html/run.html", "report.html"))
    assert run.read_text(encoding="utf-8") == report.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "words", [("report", "a.json", "--output"), ("server", "--url", "http://127.0.0.1:9", "--html")]
)
def test_without_jinja_a_sentence_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    ended = suite(*words, tmp_path / "page.html")
    assert ended.code == 2
    assert "needs Jinja2; install it with `pip install 'jinja2" in ended.errors
