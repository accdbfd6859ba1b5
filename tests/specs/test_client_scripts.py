"""The client scripts say what the specification says a client does.

`follow` is the table of outcomes of `tool-chaining.md` once more, in as few lines as it takes and
without any of this project's code, run against a script instead of a server. What it does has to
be what the script expects.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing.exceptions import Unresolvable

from .files import CHECKS, CLIENT_SCRIPTS, CONFORMANCE, SPECS, read_json, read_yaml

DIRECTIVE = Draft202012Validator(read_json(SPECS / "next-tool.schema.json"))
ERAS = ["2025-11-25", "2026-07-28"]
REGISTRY = read_yaml(CONFORMANCE / "checks.yaml")["checks"]
CHECK_ERAS = {check["id"]: check.get("spec_versions", ERAS) for check in REGISTRY}
SCRIPTS = [(path, read_yaml(path)) for path in CLIENT_SCRIPTS]
CASES = [
    pytest.param(script, case, id=f"{path.stem}-{case['name']}")
    for path, script in SCRIPTS
    for case in script["cases"]
]


def canonical(value: Any) -> str:
    def plain(item: Any) -> Any:
        if isinstance(item, dict):
            return {key: plain(child) for key, child in item.items()}
        if isinstance(item, list):
            return [plain(child) for child in item]
        return int(item) if isinstance(item, float) and item.is_integer() else item

    return json.dumps(plain(value), sort_keys=True)


def answer(script: Any, case: Any, number: int, tool: str, arguments: Any) -> dict[str, Any] | None:
    """What the mock server answers in the end; None for a protocol error."""
    for entry in [*case.get("answers", []), *script.get("answers", [])]:
        if (
            entry["tool"] == tool
            and canonical(entry.get("arguments", arguments)) == canonical(arguments)
            and number < entry.get("until_call", number + 1)
        ):
            text = json.dumps(entry["rounds"][-1]).replace('"${call}"', str(number))
            return json.loads(text).get("result")
    return None


def valid(schema: dict[str, Any], arguments: Any) -> bool:
    try:
        return Draft202012Validator(schema).is_valid(arguments)
    except Unresolvable:
        return False


def follow(script: Any, case: Any) -> tuple[list[dict[str, Any]], str, list[Any]]:
    """Calls, outcome and content of a conforming client without anybody to ask."""
    call, calls, kept = case["first_call"], [], []
    while True:
        calls.append(call)
        result = answer(script, case, len(calls), call["tool"], call["arguments"])
        if result is None:
            return calls, "failed", [item for content in kept for item in content]
        kept.append(result["content"])
        content = [item for items in kept for item in items]
        if "nextTool" not in result.get("_meta", {}):
            return calls, "completed", content
        directive = result["_meta"]["nextTool"]
        if not DIRECTIVE.is_valid(directive) or (
            {"tool", "name"} <= directive.keys() and directive["tool"] != directive["name"]
        ):
            return calls, "malformed_directive", content
        call = {
            "tool": directive.get("tool", directive.get("name")),
            "arguments": directive.get("arguments", {}),
        }
        listed = {
            tool["name"]: tool
            for tool in script["tools"]
            if tool.get("listed_after_calls", 0) <= len(calls)
        }
        tool = listed.get(call["tool"], {})
        hints = tool.get("annotations", {})
        visibility = tool.get("_meta", {}).get("ui", {}).get("visibility", ["model"])
        if len(calls) == 5:
            return calls, "limit_reached", content
        if not tool:
            return calls, "unknown_tool", content
        if not valid(tool["inputSchema"], call["arguments"]):
            return calls, "invalid_arguments", content
        if canonical(call) in map(canonical, calls):
            return calls, "cycle", content
        harmless = hints.get("readOnlyHint") is True or hints.get("destructiveHint") is False
        if "model" not in visibility or not harmless:
            return calls, "declined", content
        kept[-1] = [
            item for item in kept[-1] if "com.example/tool-chaining" not in item.get("_meta", {})
        ]


@pytest.mark.parametrize(("script", "case"), CASES)
def test_a_conforming_client_does_what_the_script_expects(script: Any, case: Any) -> None:
    calls, outcome, content = follow(script, case)
    expected = case["expect"]
    assert canonical(calls) == canonical(expected["calls"])
    assert outcome == expected["outcome"]
    if "content" in expected:
        assert content == expected["content"]


@pytest.mark.parametrize(("script", "case"), CASES)
def test_a_case_can_judge_what_it_claims_to(script: Any, case: Any) -> None:
    made = len(case["expect"]["calls"])
    listed = {tool["name"] for tool in script["tools"]}
    for check in case["checks"]:
        assert check["id"] in CHECKS
        assert check["witness"] <= made
        assert check.get("call", 1) <= made
        if check["assert"] in ("called", "arguments"):
            assert check["witness"] <= check["call"]
        if check["assert"] == "printed_content":
            assert "content" in case["expect"]
        if check["assert"] == "not_called":
            allowed = sum(call["tool"] == check["tool"] for call in case["expect"]["calls"])
            elsewhere = check.get("other_server", False)
            assert allowed == check.get("at_most", 0) or elsewhere
            answers = script["other_server"] if elsewhere else script
            answered = [*case.get("answers", []), *answers["answers"]]
            assert any(entry["tool"] == check["tool"] for entry in answered), "a decoy answers"
        eras = check.get("spec_versions", case.get("spec_versions", script["spec_versions"]))
        assert set(eras) & set(CHECK_ERAS[check["id"]])
        if set(CHECK_ERAS[check["id"]]) != set(ERAS):
            assert set(eras) == set(CHECK_ERAS[check["id"]])
    assert case["first_call"] == case["expect"]["calls"][0]
    assert {call["tool"] for call in case["expect"]["calls"]} <= listed


@pytest.mark.parametrize(("script", "case"), CASES)
def test_a_judgement_that_something_was_not_done_has_a_followed_directive_as_witness(
    script: Any, case: Any
) -> None:
    negative = {"not_called", "calls_end", "not_fetched", "call_count"}
    assert all(check["witness"] >= 2 for check in case["checks"] if check["assert"] in negative)


@pytest.mark.parametrize(
    ("path", "script"), SCRIPTS, ids=lambda v: v.stem if isinstance(v, Path) else ""
)
def test_a_script_is_named_after_its_file_and_its_cases_differ(path: Path, script: Any) -> None:
    assert script["scenario"] == path.stem
    names = [case["name"] for case in script["cases"]]
    assert len(names) == len(set(names))
    tools = [tool["name"] for tool in script["tools"]]
    assert len(tools) == len(set(tools))


def test_every_client_check_is_made_by_some_case() -> None:
    made = {
        check["id"] for _, script in SCRIPTS for case in script["cases"] for check in case["checks"]
    }
    assert made == {check for check in CHECKS if check.startswith("tool-chaining-client-")}


def test_the_registry_says_what_a_check_needs_of_the_client() -> None:
    needs: dict[str, set[str | None]] = {}
    for _, script in SCRIPTS:
        asks = "declares-elicitation" if script.get("requires_client") else None
        for check in (check for case in script["cases"] for check in case["checks"]):
            printed = "printed" if check["assert"].startswith("printed") else None
            needs.setdefault(check["id"], set()).add(printed or asks)
    # What one case shows without it does not need it.
    said = {check["id"]: check.get("needs") for check in REGISTRY}
    assert {name: None if None in need else need.pop() for name, need in needs.items()} == {
        name: said[name] for name in needs
    }
