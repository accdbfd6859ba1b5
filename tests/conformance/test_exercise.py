"""What is played of a scenario, and what is said of one that does not come about."""

from pathlib import Path
from typing import Any

import pytest

from tool_chaining_conformance.report.verdict import Verdict, conclude
from tool_chaining_conformance.server.scenario import (
    Caller,
    ServerScenario,
    load_server_scenario,
)
from tool_chaining_conformance.target import connection
from tool_chaining_conformance.target.era import Era

from .server_mutants import SERVER_MUTANTS
from .small_proxy import SmallProxy
from .small_server import SESSION, SmallServer
from .support import SHOP, UNTESTABLE, examine_server, scenario_of, statuses, stdio_server, suite


def test_what_cannot_be_judged_says_what_came_and_not_what_the_scenario_lacks() -> None:
    """The step has `repeatable: true`; its directive is malformed."""

    class ArgumentsList(SmallServer):
        def place_order(self, arguments: Any, request: Any) -> Any:
            result, _ = super().place_order(arguments, request)
            return result, {"tool": "ask_manager", "arguments": ["x"]}

    run = examine_server(ArgumentsList, [Era.MODERN])
    reasons = {
        judgement.check.id.removeprefix("tool-chaining-server-"): judgement.seen
        for judgement in run.judgements
        if judgement.untestable
    }
    assert reasons
    assert not [reason for reason in reasons.values() if "`repeatable: true`" in reason]


@pytest.mark.parametrize("era", Era)
def test_what_the_scenario_says_of_its_caller_goes_with_every_request(era: Era) -> None:
    seen: dict[str, set[object]] = {}

    class Looks(SmallServer):
        def respond(self, request: Any) -> Any:
            method = request.params.get("name") or request.method
            if request.meta.get("trace") != "t-1":
                seen.setdefault("without", set()).add(method)
            seen.setdefault(method, set()).add(request.meta.get("session"))
            return super().respond(request)

    scenario = scenario_of(SmallServer)
    meta = {**scenario.meta, "trace": "t-1"}
    callers = {"stranger": Caller(meta={"trace": "t-1"})}
    examine_server(Looks, [era], [scenario.model_copy(update={"meta": meta, "callers": callers})])
    assert "without" not in seen
    # A member that the set-up captures goes with every request after that.
    for method in ("tools/list", "place_order", "ask_manager", "pick_colour"):
        assert seen[method] == {SESSION}
    assert seen["notify_team"] == {SESSION, None}
    assert seen["login"] == {None}
    if era is Era.LEGACY:
        assert seen["ping"] == {SESSION}


# What differs between calls


PROVENANCE = "tool-chaining-server-provenance-changes-nothing"


@pytest.mark.parametrize("sold", [1, 9])
def test_a_state_that_changes_and_stays_is_no_chance(sold: int) -> None:
    class SoldOut(SmallServer):
        def place_order(self, arguments: Any, request: Any) -> Any:
            result, directive = super().place_order(arguments, request)
            return result, directive if self.calls <= sold + 1 else None

    run = examine_server(SoldOut, [Era.MODERN], [large_order()])
    judged = statuses(run.judgements)
    assert judged[PROVENANCE] == UNTESTABLE
    assert not {"FAILURE", "WARNING"} & set(judged.values())
    judgements = [each for each in run.judgements if each.check.id == PROVENANCE]
    (reason,) = {each.seen for each in judgements if each.untestable}
    assert "the same call ended in a result with nextTool" in reason


def large_order(**changes: Any) -> ServerScenario:
    scenario = scenario_of(SmallServer)
    step = scenario.steps[0].model_copy(update={"follow": None, **changes})
    return scenario.model_copy(update={"steps": (step,)})


def test_what_varies_by_itself_blames_nobody() -> None:
    class Varies(SmallServer):
        def place_order(self, arguments: Any, request: Any) -> Any:
            result, directive = super().place_order(arguments, request)
            result = self.says(f"Order {self.calls} {'was ' * (self.calls % 3)}taken.")
            result["structuredContent"]["lines"] = [{"no": n} for n in range(self.calls % 4)]
            directive["arguments"]["reason"] = f"{self.calls}"
            return result, directive

    run = examine_server(Varies, [Era.MODERN], [large_order()])
    assert not {"FAILURE", "WARNING"} & set(statuses(run.judgements).values())


@pytest.mark.parametrize(
    ("kind", "verdict"),
    [
        (SmallProxy, Verdict.CONFORMANT),
        (SERVER_MUTANTS["followed-directive-stays"], Verdict.NONCONFORMANT),
    ],
)
def test_who_follows_every_directive_need_not_show_one(kind: Any, verdict: Verdict) -> None:
    scenario = scenario_of(kind)
    asked = next(step for step in scenario.steps if step.followed)
    steps = (asked.model_copy(update={"repeatable": True}),)
    run = examine_server(kind, scenarios=[scenario.model_copy(update={"steps": steps})])
    assert conclude(run).verdict is verdict


# What does not come about


def test_what_cannot_be_captured_is_named_with_its_step(tmp_path: Path) -> None:
    path = tmp_path / "captured.yaml"
    path.write_text(SHOP.read_text().replace("session is (", "no such ("))
    run = examine_server(SmallServer, [Era.MODERN], [load_server_scenario(path)])
    assert any(
        each.endswith("step sign-in: no value to capture as 'session': a result with no directive")
        for each in run.problems
    )
    assert not [each for each in run.judgements if each.is_violation]


def test_a_call_that_should_have_been_refused_says_nothing_of_refusals() -> None:
    scenario = scenario_of(SmallServer)
    stranger = scenario.steps[-1].model_copy(update={"caller": None})
    steps = (*scenario.steps[:-1], stranger)
    run = examine_server(SmallServer, [Era.MODERN], [scenario.model_copy(update={"steps": steps})])
    assert any("step stranger: expected a refusal" in each for each in run.problems)
    assert statuses(run.judgements)["tool-chaining-server-chained-call-authorized"] == UNTESTABLE


def test_a_call_that_asks_for_ever_is_the_end_of_its_revision(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class AsksForEver(SmallServer):
        """With no question in it, and nothing to be sent back."""

        def call(self, request: Any) -> Any:
            if request.params["name"] == "pick_colour":
                return {"resultType": "input_required"}
            return super().call(request)

    monkeypatch.setattr(connection, "ROUNDS", 2)
    run = examine_server(AsksForEver, [Era.MODERN])
    assert any("pick_colour asked for input 2 times and did not" in each for each in run.problems)


DROPS = """
    def ask_manager(self, arguments):
        print("[09:12] ERROR Dropped the directive of `ask_manager`:", file=sys.stderr)
        print("        no such tool", file=sys.stderr)
        return self.says("The manager was asked.")

    def run(self, name, arguments, request):
        if name == "ask_manager":
            return self.ask_manager(arguments), None
        return super().run(name, arguments, request)
"""
RESERVES = """
name: reserves
description: A chain of two follow-up calls.
steps:
  - id: order
    call: place_order
    arguments: {sku: chair, quantity: 500}
    expect: {nextTool: ask_manager CHAIN}
    repeatable: true
    follow: true
"""


@pytest.mark.parametrize(
    ("members", "chain", "code", "why"),
    [
        (DROPS, "", 1, "--strict allows no such directive"),
        (
            DROPS,
            ", chain: [ask_manager, notify_team]",
            1,
            "expected the chain ask_manager → notify",
        ),
        ("", ", chain: [ask_manager, notify_team]", 4, "Please sign in first."),
        ("", "", 4, "Please sign in first."),
    ],
)
def test_a_later_directive_that_was_left_out_is_seen(
    members: str, chain: str, code: int, why: str, tmp_path: Path
) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(RESERVES.replace(" CHAIN", chain))
    arguments = ("server", "--spec-version", Era.MODERN, "--scenario", path)
    server = ("--", *stdio_server(tmp_path, members or "    pass"))
    run = suite(*arguments, "--strict", *server)
    assert (run.code, why in run.output) == (code, True), run.output
    if members:
        place = "note: reserves, 2026-07-28, step order, call 2: "
        record = "[09:12] ERROR Dropped the directive of `ask_manager`:\n  | no such tool\n"
        assert place + record in run.output
        assert suite(*arguments, *server).code == (4 if chain else 0)


REMEMBERS = """
    first = None

    def respond(self, request):
        if self.first is None:
            self.first = request.declared
        return super().respond(request)

    def attach(self, result, directive, request):
        if self.first:
            super().attach(result, directive, request)
"""


def test_a_server_that_remembers_its_first_client_is_asked_by_another(tmp_path: Path) -> None:
    arguments = ("server", "--spec-version", Era.MODERN, "--scenario", SHOP, "--json")
    run = suite(*arguments, "--", *stdio_server(tmp_path, REMEMBERS))
    warned = [each["id"] for each in run.report["checks"] if each["status"] == "WARNING"]
    assert warned == ["tool-chaining-server-emits-to-undeclared-client"]


# One process over stdio


KEEPS_IN_MEMORY = """
    known = None

    def lets_in(self, request):
        return True

    def run(self, name, arguments, request):
        if name == "notify_team" and self.known is None:
            raise small_server.Refusal(-32602, "no such order here")
        if name in ("pick_colour", "login"):
            self.known = True
        return super().run(name, arguments, request)
"""
PICKED = """
name: picked
description: A step whose client is asked, and its directive.
steps:
  - {id: colour, call: pick_colour, arguments: {sku: chair}, elicitation: [ANSWER], follow: true}
""".replace("ANSWER", "{action: accept, content: {colour: green}}")
APART = """
name: apart
description: What one step keeps, another one needs, and that one declares elicitation.
steps:
  - {id: keep, call: login, arguments: {user: a, phrase: b}, expect: {nextTool: none}}
  - id: need
    call: notify_team
    arguments: {order: "1"}
    elicitation: [{action: accept, content: {colour: green}}]
    expect: {isError: false}
"""


@pytest.mark.parametrize("scenario", [PICKED, APART])
def test_a_chain_stays_in_the_process_of_its_first_call(scenario: str, tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(scenario)
    arguments = ("server", "--spec-version", "2025-11-25", "--scenario", path, "--json")
    run = suite(*arguments, "--", *stdio_server(tmp_path, KEEPS_IN_MEMORY))
    notes = run.output + run.errors
    assert ("no such order here" in notes) is (scenario is APART)
