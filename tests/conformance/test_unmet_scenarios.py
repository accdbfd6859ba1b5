"""What a server does not bring that a scenario counts on is named, and blames nobody."""

from pathlib import Path
from typing import Any

import pytest

from banking_server.conformance.report.run import Run
from banking_server.conformance.report.verdict import Verdict, conclude
from banking_server.conformance.server.scenario import Capture, ServerScenario, load_server_scenario
from banking_server.conformance.target import connection
from banking_server.conformance.target.era import Era

from .small_proxy import SmallProxy
from .small_server import Refusal, SmallServer
from .support import SHOP, examine_server, scenario_of, statuses

PREFIX = "tool-chaining-server-"
ONE = "name: one\ndescription: One step.\nsteps:\n  - "


@pytest.fixture
def written(tmp_path: Path) -> Any:
    """Return a way to read a scenario from its text, or from the shop's with a replacement."""

    def read(text: str, *replacement: str) -> ServerScenario:
        path = tmp_path / "written.yaml"
        path.write_text(SHOP.read_text().replace(text, *replacement) if replacement else ONE + text)
        return load_server_scenario(path)

    return read


def examined(
    scenario: ServerScenario,
    kind: type[SmallServer] = SmallServer,
    eras: tuple[Era, ...] = (Era.MODERN,),
) -> Run:
    run = examine_server(kind, eras, [scenario])
    assert not {"FAILURE", "WARNING"} & set(statuses(run.judgements).values())
    assert conclude(run.judgements, silence=run.silence, stale=[]).verdict in (
        Verdict.INCONCLUSIVE,
        Verdict.CONFORMANT,
    )
    return run


def untestable(run: Run, check: str) -> str:
    """Return the one reason why a check could not be made."""
    (reason,) = {
        each.seen for each in run.judgements if each.check.id == PREFIX + check and each.untestable
    }
    return reason


# What a step expects


def test_a_call_that_is_refused_now_and_then_says_nothing_of_them_either() -> None:
    class Moody(SmallServer):
        """Lets a stranger in now and then, whatever the call claims."""

        asked = 0

        def lets_in(self, request: Any) -> bool:
            if super().lets_in(request):
                return True
            type(self).asked += 1
            return self.asked % 2 == 0

    run = examined(scenario_of(SmallServer), Moody)
    assert "refused now and then by itself" in untestable(run, "chained-call-authorized")


# What is captured


def test_what_cannot_be_captured_is_named_with_its_step(written: Any) -> None:
    class Pictures(SmallServer):
        def says(self, text: str) -> Any:
            said = super().says(text)
            return {**said, "content": [7, {"type": "image"}, *said["content"]]}

    run = examined(written("'session is (\\S+)\\.'", "'no such (\\S+)'"), Pictures)
    assert any(
        each.endswith("step sign-in: nothing to capture as 'session': a result with no directive")
        for each in run.problems
    )
    step = '{id: asked, call: ask_manager, arguments: {order: "7"}, capture: {x: {pointer: /y}}}'
    run = examined(written(step))
    assert any("step asked: nothing to capture as 'x'" in each for each in run.problems)


def test_every_part_of_a_captured_secret_is_kept_out_of_the_report(written: Any) -> None:
    class Hands(SmallServer):
        """Hands out a secret of several parts, and then has one of them in a directive."""

        def run(self, name: str, arguments: Any, request: Any) -> Any:
            if name == "login":
                said = self.says("Welcome.")
                said["structuredContent"]["keys"] = {"a": ["first-part", True], "b": "other-part"}
                return said, None
            return super().run(name, arguments, request)

    order = 'arguments: {order: "7"}'
    scenario = written(order, order.replace('"7"', "other-part"))
    keys = Capture(pointer="/structuredContent/keys", secret=True)
    setup = scenario.setup[0].model_copy(update={"capture": {"session": keys}})
    run = examine_server(Hands, [Era.MODERN], [scenario.model_copy(update={"setup": (setup,)})])
    leaks = [each for each in run.judgements if each.not_kept]
    assert {each.check.id for each in leaks} == {f"{PREFIX}no-secret-in-arguments"}
    assert "other-part" not in str(leaks)


# What does not come about


def test_a_set_up_that_fails_is_the_end_of_its_revision(written: Any) -> None:
    run = examine_server(
        SmallServer,
        [Era.MODERN],
        [written("    expect: {isError: false}\nsteps", "    expect: {isError: true}\nsteps")],
    )
    assert any("set-up step sign-in: expected isError true" in each for each in run.problems)
    assert not [each for each in run.judgements if each.not_kept]


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
    assert any("pick_colour asked for input 2 times and never" in each for each in run.problems)


# Intermediaries


@pytest.mark.parametrize("how", ["interim", "refused"])
def test_an_intermediary_that_came_to_no_result_shows_nothing(how: str) -> None:
    class Stuck(SmallProxy):
        def follow(self, request: Any) -> Any:
            if how == "interim":
                return {"resultType": "task", "task": {"taskId": "1", "status": "working"}}
            return {"content": [{"type": "text", "text": "Closed."}], "isError": True}

    scenario = scenario_of(SmallProxy)
    run = examined(scenario.model_copy(update={"steps": scenario.steps[-1:]}), Stuck)
    reason = untestable(run, "intermediary-removes-directive")
    assert ("what was followed came to no result" if how == "interim" else "isError") in reason


# Secrets in what went wrong


def test_a_long_error_holds_no_beginning_of_a_secret() -> None:
    class Tells(SmallServer):
        def list_tools(self, request: Any) -> Any:
            raise Refusal(-32000, "." * 190 + 'open "sesame" \\ now' + "." * 2000)

    run = examine_server(Tells, [Era.MODERN])
    assert run.problems
    assert all(len(each) < 800 for each in run.problems)
    assert "open" not in str(run.problems + [each.seen for each in run.judgements])


# What is not held against a server
