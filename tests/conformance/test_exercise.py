"""What is played of a scenario: values from its set-up reach every place that names them."""

from pathlib import Path
from typing import Any

import pytest

from banking_server.conformance.report.verdict import Conclusion, Verdict, conclude
from banking_server.conformance.server.scenario import (
    Caller,
    Capture,
    ServerScenario,
    StepExpectation,
    load_server_scenario,
)
from banking_server.conformance.target.era import Era

from .server_mutants import SERVER_MUTANTS
from .small_proxy import SmallProxy
from .small_server import SESSION, Refusal, SmallServer
from .support import UNTESTABLE, examine_server, scenario_of, statuses

NO_CYCLE = "tool-chaining-server-no-cycle"
SCENARIO = """
name: captured
description: The order is what the set-up captured.
setup:
  - id: sign-in
    call: login
    arguments: {user: alice, phrase: x}
    capture:
      password: {text: 'session is (\\S+)\\.'}
meta: {session: "${password}"}
steps:
  - id: ask
    call: ask_manager
    arguments: {order: "${password}"}
    expect: {nextTool: notify_team, arguments: {order: "${password}"}}
    follow: [{}]
"""


@pytest.fixture
def captured(tmp_path: Path) -> ServerScenario:
    path = tmp_path / "captured.yaml"
    path.write_text(SCENARIO)
    return load_server_scenario(path)


@pytest.mark.parametrize("era", Era)
def test_an_expected_argument_is_a_captured_value(era: Era, captured: ServerScenario) -> None:
    run = examine_server(SmallServer, [era], [captured])
    assert run.problems == []
    assert statuses(run.judgements)[NO_CYCLE] == "SUCCESS"


@pytest.mark.parametrize("era", Era)
def test_a_chain_that_leads_back_to_a_call_with_a_captured_value(
    era: Era, captured: ServerScenario
) -> None:
    run = examine_server(SERVER_MUTANTS["cycle"], [era], [captured])
    assert statuses(run.judgements)[NO_CYCLE] == "WARNING"


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
    assert "malformed" in reasons["names-next-tool-in-text"]
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


INTERIM = "tool-chaining-server-no-directive-on-interim-result"


def test_a_task_carries_no_directive_on_the_older_revision_either() -> None:
    class Tasks(SmallServer):
        def attach(self, result: Any, directive: Any, request: Any) -> None:
            super().attach(result, directive, request)
            result["task"] = {"taskId": "1", "status": "working"}
            result["content"] = []

    judged = statuses(examine_server(Tasks, [Era.LEGACY]).judgements)
    assert judged[INTERIM] == "FAILURE"
    assert "FAILURE" not in {status for check, status in judged.items() if check != INTERIM}


def test_a_result_of_an_unknown_type_shows_nothing() -> None:
    class OwnType(SmallServer):
        def attach(self, result: Any, directive: Any, request: Any) -> None:
            super().attach(result, directive, request)
            result.update(resultType="x_example", content=[])
            result["_meta"]["nextTool"] = {"tool": 7}

    judged = statuses(examine_server(OwnType, [Era.MODERN]).judgements)
    assert not {"FAILURE", "WARNING"} & set(judged.values())


REMOVES = "tool-chaining-server-intermediary-removes-directive"


@pytest.mark.parametrize("left", ["nextTool", "words"])
def test_what_an_intermediary_followed_is_removed_for_every_client(left: str) -> None:
    class ForUndeclared(SmallProxy):
        def follow(self, request: Any) -> Any:
            result = super().follow(request)
            if request.declared:
                return result
            if left == "words":
                result["content"].append(self.in_words({"tool": "a", "arguments": {}}))
                return result
            return {**result, "_meta": {"nextTool": {"tool": "desk_login", "arguments": {}}}}

    scenario = scenario_of(SmallProxy)
    step = scenario.steps[-1].model_copy(update={"repeatable": True})
    scenario = scenario.model_copy(update={"steps": (step,)})
    assert examined(SmallProxy, scenario)[REMOVES] == "SUCCESS"
    assert examined(ForUndeclared, scenario)[REMOVES] == "FAILURE"


def test_what_the_scenario_expects_hides_no_directive_that_was_followed() -> None:
    scenario = scenario_of(SmallProxy)
    step = scenario.steps[-1].model_copy(
        update={"expect": StepExpectation.model_validate({"nextTool": "none"})}
    )
    scenario = scenario.model_copy(update={"steps": (step,)})
    assert examined(SERVER_MUTANTS["followed-directive-stays"], scenario)[REMOVES] == "FAILURE"


def examined(kind: Any, scenario: ServerScenario) -> dict[str, str]:
    return statuses(examine_server(kind, [Era.MODERN], [scenario]).judgements)


def test_a_server_that_gates_on_the_declaration_breaks_a_should_and_nothing_else() -> None:
    run = examine_server(SERVER_MUTANTS["gates-on-declaration"], [Era.MODERN])
    judged = statuses(run.judgements)
    assert judged["tool-chaining-server-malformed-settings-absent"] == "SUCCESS"
    assert conclude(run.judgements, silence=run.silence, stale=[]) == Conclusion(
        Verdict.CONFORMANT, "every MUST is kept; 1 SHOULD is not"
    )
    some = conclude(run.judgements, silence=None, stale=[], expected=2)
    assert some.reason.endswith("; but 2 checks failed as expected")


def test_a_later_list_that_fails_leaves_what_needs_no_list() -> None:
    class ListsOnce(SmallServer):
        def list_tools(self, request: Any) -> Any:
            if self.calls > 1:
                raise Refusal(-32603, "Out of order")
            return super().list_tools(request)

    judged = statuses(examine_server(ListsOnce, [Era.MODERN]).judgements)
    assert judged["tool-chaining-server-names-listed-tool"] == UNTESTABLE
    assert judged["tool-chaining-server-directive-names-tool"] == "SUCCESS"
    assert judged["tool-chaining-server-provenance-changes-nothing"] == "SUCCESS"


# What differs between calls


SAME = "tool-chaining-server-same-input-same-directive"


@pytest.mark.parametrize("sold", [1, 2, 9, 20])
def test_a_state_that_changes_and_stays_is_no_chance(sold: int) -> None:
    class SoldOut(SmallServer):
        def place_order(self, arguments: Any, request: Any) -> Any:
            result, directive = super().place_order(arguments, request)
            return result, directive if self.calls <= sold + 1 else None

    run = examine_server(SoldOut, [Era.MODERN], [large_order()])
    judged = statuses(run.judgements)
    assert judged[SAME] == UNTESTABLE
    assert not {"FAILURE", "WARNING"} & set(judged.values())
    (reason,) = {each.seen for each in run.judgements if each.check.id == SAME and each.untestable}
    assert "the state of the server changed" in reason


def large_order(**changes: Any) -> ServerScenario:
    scenario = scenario_of(SmallServer)
    step = scenario.steps[0].model_copy(update={"follow": None, **changes})
    return scenario.model_copy(update={"steps": (step,)})


@pytest.mark.parametrize("era", Era)
def test_what_varies_by_itself_is_named_and_blames_nobody(era: Era) -> None:
    class Varies(SmallServer):
        def place_order(self, arguments: Any, request: Any) -> Any:
            result, directive = super().place_order(arguments, request)
            result = self.says(f"Order {self.calls} {'was ' * (self.calls % 3)}taken.")
            result["structuredContent"]["lines"] = [{"no": n} for n in range(self.calls % 4)]
            directive["arguments"]["reason"] = f"{self.calls}"
            return result, directive

    run = examine_server(Varies, [era], [large_order()])
    assert not {"FAILURE", "WARNING"} & set(statuses(run.judgements).values())
    (seen,) = {
        each.seen
        for each in run.judgements
        if each.check.id == "tool-chaining-server-provenance-changes-nothing"
        and each.status == "SKIPPED"
    }
    assert seen == (
        "not compared, as plain calls differ in it: the arguments of the directive at /reason, the "
        "content at /0/text, the structured content at /lines, the structured content at /said"
    )


def test_a_captured_secret_that_is_short_is_redacted_as_a_word_and_told_of() -> None:
    class Pins(SmallServer):
        def place_order(self, arguments: Any, request: Any) -> Any:
            return self.says("The pin is 42."), {
                "tool": "ask_manager",
                "arguments": {"order": "42"},
            }

    capture = {"pin": Capture(text=r"is (\d+)", secret=True)}
    run = examine_server(Pins, [Era.MODERN], [large_order(capture=capture)])
    assert any("the secret 'pin' that was captured is shorter" in each for each in run.problems)
    (found,) = [
        each
        for each in run.judgements
        if each.check.id == "tool-chaining-server-no-secret-in-arguments" and each.not_kept
    ][:1]
    assert '"42"' not in str(found.messages[-1].body)
