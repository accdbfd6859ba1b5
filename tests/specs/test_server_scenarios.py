"""The server scenarios exercise what they are for."""

from typing import Any

import pytest

from .files import SERVER_SCENARIOS, read_yaml

pytestmark = pytest.mark.quick

ESCALATIONS = {
    "request_agent_handoff",
    "request_manager_approval",
    "prepare_money_transfer",
    "record_compliance_report",
}
SCENARIOS: list[dict[str, Any]] = [read_yaml(path) for path in SERVER_SCENARIOS]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario["name"])
def test_only_steps_that_may_be_repeated_or_followed_end_in_judged_directives(
    scenario: dict[str, Any],
) -> None:
    named = [s for s in scenario["steps"] if s["expect"]["nextTool"] not in ("none", "any")]
    assert any(step.get("repeatable") for step in named)
    assert any(step.get("follow") for step in named)


def test_the_four_escalations_are_exercised() -> None:
    assert {
        step["expect"]["nextTool"]
        for scenario in SCENARIOS
        for step in scenario["steps"]
        if step["expect"]["nextTool"] not in ("none", ["request_agent_handoff", "none"])
    } == ESCALATIONS
