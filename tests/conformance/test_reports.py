"""What reports hold, in every form: each failure, what was not exercised, nothing that runs."""

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tool_chaining_conformance.report.redaction import REDACTED
from tool_chaining_conformance.report.run import Run
from tool_chaining_conformance.report.verdict import Verdict, conclude
from tool_chaining_conformance.requirements import load_checks
from tool_chaining_conformance.target.era import Era

from .server_mutants import SERVER_MUTANTS
from .small_server import SESSION, Refusal, SmallServer, tool
from .support import REPORT, SHOP, Ended, serving, suite

LISTED = "tool-chaining-server-names-listed-tool"


class Reports:
    """One run, told in every form."""

    def __init__(self, folder: Path, server: SmallServer, *arguments: object) -> None:
        self.folder = folder
        files = ("--output-dir", folder, "--junit", folder / "junit.xml")
        files += ("--html", folder / "page.html")
        with serving(server) as url:
            self.run: Ended = suite("server", "--url", url, *files, *arguments)

    @property
    def report(self) -> dict[str, Any]:
        report: dict[str, Any] = json.loads(self.text("report.json"))
        return report

    @property
    def junit(self) -> ElementTree.Element:
        return ElementTree.fromstring(self.text("junit.xml"))

    def text(self, name: str) -> str:
        return (self.folder / name).read_text(encoding="utf-8")

    def forms(self) -> dict[str, str]:
        files = ("report.json", "junit.xml", "page.html")
        return {"terminal": self.run.output} | {f: self.text(f) for f in files}


class WrongInTwoSteps(SmallServer):
    """Each of two steps names a tool that is not listed, with another name."""

    def attach(self, result: Any, directive: Any, request: Any) -> None:
        super().attach(result, directive, request)
        if request.params["name"] in ("place_order", "pick_colour"):
            directive["tool"] = f"x-{request.params['name']}"


def test_every_failure_is_told_in_every_form(tmp_path: Path) -> None:
    reports = Reports(tmp_path, WrongInTwoSteps(), "--scenario", SHOP)
    assert reports.run.code == 1
    assert not list(REPORT.iter_errors(reports.report))
    check = load_checks()[LISTED]
    for said in (LISTED, check.requirements[0].text, check.remedy, "tools/call"):
        assert said in reports.run.output
    for form, text in reports.forms().items():
        for seen in ("x-place_order", "x-pick_colour"):
            assert seen in text, form
    for check in reports.report["checks"]:
        if check["id"] == LISTED:
            failed = [each for each in check["judgements"] if each["status"] == "FAILURE"]
            assert len({each["step"] for each in failed}) == 2
            pointers = {each["place"]["pointer"] for each in failed}
            assert pointers == {"/result/_meta/nextTool/tool"}
            at_fault = [each["messages"][each["place"]["message"]] for each in failed]
            assert all("nextTool" in each["message"]["result"]["_meta"] for each in at_fault)
    failures = reports.junit.findall("testsuite/testcase/failure")
    assert len(failures) == 2  # One in each era.
    assert all("x-place_order" in (failure.get("message") or "") for failure in failures)


@pytest.mark.parametrize("strict", [False, True])
def test_a_should_that_is_not_kept_fails_only_a_strict_run(tmp_path: Path, strict: bool) -> None:
    """CI that shows JUnit is red for it exactly if the command fails."""
    server = SERVER_MUTANTS["silent-in-discover"]()
    options = ["--scenario", SHOP, "--spec-version", "2026-07-28", *["--strict"] * strict]
    reports = Reports(tmp_path, server, *options)
    assert reports.run.code == int(strict)
    assert {suite.get("failures") for suite in reports.junit} == {str(int(strict))}
    assert len([*reports.junit.iter("system-out")]) == int(not strict)
    assert reports.report["verdict"] == "conformant"
    why = ", and --strict allows no warning" if strict else ""
    assert reports.run.output.splitlines()[-1] == (
        f"conformant: every MUST that was exercised is met; 1 SHOULD is not{why}. "
        "No client will follow this server: it does not advertise tool chaining"
    )


def test_a_server_that_advertises_in_one_revision_is_followed_there(tmp_path: Path) -> None:
    reports = Reports(tmp_path, SERVER_MUTANTS["silent-in-discover"](), "--scenario", SHOP)
    assert "No client will follow this server on 2026-07-28: it" in reports.run.output


MADE_ONCE = """
steps:
  - id: order
    call: place_order
    arguments: {sku: chair, quantity: 500}
    repeatable: true
    follow: [{repeatable: true}, {}]
  - {id: small, call: place_order, arguments: {sku: chair, quantity: 5}, expect: {nextTool: none}}
  - {id: asked, call: ask_manager, arguments: {order: x}}
"""


def test_a_verdict_names_what_was_not_exercised_and_what_was_made_once(tmp_path: Path) -> None:
    path = tmp_path / "one.yaml"
    path.write_text(SHOP.read_text().partition("steps:")[0] + MADE_ONCE)
    reports = Reports(tmp_path, SmallServer(), "--scenario", path)
    assert reports.run.code == 0, reports.run.output
    *_, verdict = lines = reports.run.output.splitlines()
    assert verdict == "conformant: every check that applies passed"
    gaps = "".join(line for line in lines if re.match("not judged: |judged in part: ", line))
    reason = "the call was made once, so nothing was compared; it has no `repeatable: true`"
    once = "shop/small", "shop/asked"
    rows = {row["id"]: row for row in reports.report["not_exercised"] if row["reason"] == reason}
    changes_nothing = rows["tool-chaining-server-provenance-changes-nothing"]
    assert changes_nothing["places"] == list(once)
    assert changes_nothing["spec_versions"] == ["2026-07-28", "2025-11-25"]
    assert rows["tool-chaining-server-accepts-later-version"]["places"] == ["shop/asked"]
    forms = reports.forms()
    assert "shop/order, call 3" in forms["report.json"]
    assert "shop/order, call 2" not in forms["report.json"]
    assert "TC-S-08" in gaps


class OutOfPaper(SmallServer):
    """The last call of its chain fails."""

    def notify_team(self, arguments: Any, request: Any) -> Any:
        raise Refusal(-32000, "Out of paper")


@pytest.mark.parametrize(
    ("kind", "expected", "went"),
    [
        (
            OutOfPaper,
            "expect: {nextTool: none}",
            "step order, call 3: the follow-up call failed, so there is no chain to judge: error "
            '-32000 "Out of paper" (and 1 more)',
        ),
        (
            SmallServer,
            "expect: {isError: true}",
            "step small: expected isError true, saw a result with no directive (and 1 more)",
        ),
    ],
)
def test_a_run_that_did_not_go_as_the_scenario_expects_is_no_pass(
    tmp_path: Path, kind: type[SmallServer], expected: str, went: str
) -> None:
    """Also if every check of a MUST found something to judge elsewhere."""
    path = tmp_path / "one.yaml"
    steps = MADE_ONCE.replace("expect: {nextTool: none}", expected)
    path.write_text(SHOP.read_text().partition("steps:")[0] + steps)
    reports = Reports(tmp_path, kind(), "--scenario", path)
    assert reports.run.code == 4
    last = reports.run.output.splitlines()[-1]
    assert last == f"inconclusive: not all went as expected: shop, 2026-07-28, {went}"


ORDERS = "\n::error::conformant\n##[error]done\x1b[2K\x9b2K\x85\u2028\u202ex"
"""What a CI system or a terminal would obey, if it began a line or stood there raw."""

SECRET = "hunter2-hunter2"


class Hostile(SmallServer):
    """Whatever it says is meant to break out of a report, to tell a secret, or to fill it."""

    tools = (*SmallServer.tools, tool(f"pick{ORDERS}", ["sku"]))

    def attach(self, result: Any, directive: Any, request: Any) -> None:
        super().attach(result, directive, request)
        directive["tool"] = directive["title"] = ORDERS
        directive[ORDERS] = ["x" * 20_000, float("nan"), "\ud800", SECRET]

    def place_order(self, arguments: Any, request: Any) -> Any:
        if arguments["quantity"] > 100:
            return super().place_order(arguments, request)
        raise Refusal(-32000, ORDERS + SECRET)

    def discover(self) -> Any:
        found = super().discover()
        return found | {"instructions": ORDERS, "capabilities": {ORDERS: {}}}

    def initialize(self) -> Any:
        raise Refusal(-32000, ORDERS)


class RefusesWithOrders(Hostile):
    def discover(self) -> Any:
        raise Refusal(-32000, ORDERS)


@pytest.mark.parametrize(("kind", "code"), [(Hostile, 1), (RefusesWithOrders, 3)])
def test_no_text_of_a_target_gives_an_order_or_tells_a_secret(
    kind: type[SmallServer], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", SECRET)
    options = ("--scenario", SHOP, "--header", "X-Token=SHOP_TOKEN")
    reports = Reports(tmp_path, kind(), *options)
    assert reports.run.code == code
    with serving(kind()) as url:
        runs = [
            reports.run,
            suite("server", "--url", url, *options, "--json"),
            suite("scenario", "--url", url),
            suite("report", tmp_path / "report.json", "--output", tmp_path / "again.html"),
        ]
    texts = [text for run in runs for text in (run.output, run.errors)]
    for text in [*texts, *reports.forms().values()]:
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e]", text)
        assert SECRET not in text
    for text in texts:
        assert not re.search(r"^\s*::|##\[", text, re.MULTILINE)
    json.loads(reports.text("report.json"), parse_constant=lambda name: pytest.fail(name))


@pytest.mark.parametrize(
    ("directive", "lines"),
    [
        (None, ["wrong     /result/_meta/nextTool is null"]),
        ({"name": "notify_team"}, ["change    You sent `name`; the member is `tool`."]),
        ({"tool": "notify_team", "args": 1}, ["change    You sent `args`; the member is `arg"]),
        ({"tool": "notify_team", "arguments": {"order": "1", "price": 9007199254740993}}, []),
    ],
)
def test_a_failure_shows_what_was_sent(directive: Any, lines: list[str], tmp_path: Path) -> None:
    class Sends(SmallServer):
        def attach(self, result: Any, own: Any, request: Any) -> None:
            super().attach(result, own, request)
            if request.params["name"] == "pick_colour":
                result["_meta"]["nextTool"] = directive

    reports = Reports(tmp_path, Sends(), "--scenario", SHOP, "--spec-version", "2026-07-28")
    assert reports.run.code == 1
    for line in lines:
        assert line in reports.run.output
    for form, text in reports.forms().items():
        assert ("9007199254740993" in text) is (not lines), form


@pytest.mark.parametrize("refused", ["list_tools", "respond"])
def test_a_long_error_holds_no_beginning_of_a_secret(tmp_path: Path, refused: str) -> None:
    def tells(*_: Any) -> Any:
        raise Refusal(-32000, "." * 3990 + 'open "sesame" \\ now' + "." * 2000)

    kind = type("Tells", (SmallServer,), {refused: tells})
    reports = Reports(tmp_path, kind(), "--scenario", SHOP, "--spec-version", "2026-07-28")
    assert reports.run.code == 3
    for form, text in reports.forms().items():
        assert ".open" not in text, form
        assert len(max(text.splitlines(), key=len)) < 5000, form


def test_a_run_in_which_nothing_applies_is_no_pass() -> None:
    assert conclude(Run("server", spoken=[*Era])).verdict is Verdict.INCONCLUSIVE


def test_what_was_kept_before_it_was_known_as_a_secret_is_shown_nowhere(tmp_path: Path) -> None:
    class TellsEarly(SmallServer):
        """What the set-up captures stands in the greeting, which a failed check shows."""

        def discover(self) -> Any:
            silent = {**super().discover(), "capabilities": {"tools": {}}}
            info = {"name": f"Shop of {SESSION}", "version": SESSION}
            silent["_meta"] = {"io.modelcontextprotocol/serverInfo": info}
            return {**silent, "instructions": f"The word is {SESSION}."}

    reports = Reports(tmp_path, TellsEarly(), "--scenario", SHOP)
    forms = reports.forms()
    assert f"The word is {REDACTED}." in forms["report.json"]
    assert f"Shop of {REDACTED}" in forms["page.html"]
    for form, text in forms.items():
        assert SESSION not in text, form
