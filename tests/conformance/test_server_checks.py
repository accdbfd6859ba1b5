"""The checks of servers as code: one function for each id, found by one search."""

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from banking_server.chaining import content
from banking_server.conformance.report.judgement import Finding
from banking_server.conformance.requirements import load_checks
from banking_server.conformance.server import checks
from banking_server.conformance.server.checks import CHECKS
from banking_server.conformance.server.checks.registry import check
from banking_server.conformance.server.checks.target import arguments_valid, hidden_from_model
from banking_server.conformance.server.evidence import Greeting, ResultWithDirective
from banking_server.conformance.server.reading import SeenDirective

PACKAGE = Path(checks.__file__).parent
ROOMS = [PACKAGE.parents[1] / room for room in ("server", "target")]
MODULES = sorted(path for room in ROOMS for path in room.rglob("*.py"))


def test_the_registered_checks_are_those_of_the_specification() -> None:
    assert set(CHECKS) == {each.id for each in load_checks().values() if each.side == "server"}


@pytest.mark.parametrize("check_id", sorted(CHECKS))
def test_one_search_finds_a_check(check_id: str) -> None:
    found = [
        (path.name, number)
        for path in sorted(PACKAGE.glob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if f'"{check_id}"' in line
    ]
    assert len(found) == 1
    function = CHECKS[check_id].judge
    assert function.__name__ == check_id.removeprefix("tool-chaining-server-").replace("-", "_")
    assert function.__module__ == f"{checks.__name__}.{found[0][0].removesuffix('.py')}"


def test_checks_of_one_kind_of_evidence_need_the_same() -> None:
    needs: dict[type, set[str | None]] = {}
    for each in CHECKS.values():
        for kind in each.on:
            needs.setdefault(kind, set()).add(load_checks()[each.id].needs)
    assert {on.__name__: need for on, need in needs.items() if len(need) > 1} == {}


def test_an_id_is_registered_once() -> None:
    with pytest.raises(ValueError, match="registered twice"):
        check("tool-chaining-server-no-cycle", on=Greeting)(lambda greeting: None)


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@pytest.mark.parametrize("path", MODULES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_judge_and_judged_share_constants_alone(path: Path) -> None:
    shared = {name for name in imported(path) if name.startswith("banking_server.chaining")}
    constants = {f"banking_server.chaining.directive.{n}" for n in ("IDENTIFIER", "META_KEY")}
    assert shared <= {*constants, "banking_server.chaining.directive.SETTINGS"}


def test_the_suites_server_side_imports_no_server_framework() -> None:
    code = (
        "import sys\n"
        "import banking_server.conformance.server.run\n"
        "print(*sorted({'mcp', 'mcp_types', 'starlette', 'uvicorn'} & set(sys.modules)))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert ended.stdout.split() == []


# Hidden from the model: the suite decides it by itself, and as the client half does.

HIDDEN = [
    ({"visibility": []}, True),
    ({"visibility": ["app"]}, True),
    ({"visibility": ["model"]}, False),
    ({"visibility": ["app", "model"]}, False),
    ({"visibility": ["supermodel"]}, True),
    ({"visibility": [["model"]]}, True),
    ({"visibility": [{"model": 1}, None, 7]}, True),
    ({"visibility": [{"x": [1]}, "model"]}, False),
    ({"visibility": None}, True),
    ({"visibility": "model"}, False),
    ({"visibility": "app"}, True),
    ({"visibility": "supermodel"}, True),
    ({"visibility": ""}, True),
    ({"visibility": {"x": 1}}, True),
    ({"visibility": {"model": True}}, True),
    ({"visibility": 1}, True),
    ({"visibility": True}, True),
    ({"visibility": False}, True),
    ({"Visibility": []}, False),
    ({}, False),
    (None, False),
    ([], False),
    ("visibility", False),
]
METAS = [
    *(({"ui": ui}, hidden) for ui, hidden in HIDDEN),
    ({}, False),
    (None, False),
    ([], False),
    ("ui", False),
    ({"visibility": []}, False),
]


@pytest.mark.parametrize(("meta", "hidden"), METAS, ids=str)
def test_judge_and_judged_hide_the_same_tools(meta: Any, hidden: bool) -> None:
    assert hidden_from_model({"name": "x", "_meta": meta}) is hidden
    assert content.hidden_from_model(meta) is hidden


def test_a_tool_without_meta_is_not_hidden() -> None:
    assert hidden_from_model({"name": "x"}) is False


# Arguments and the input schema: the suite has a rule of its own for what cannot be checked.

SECRET = "hunter2-secret"
MISFITS = [
    ({"required": ["order"]}, {}, '$ breaks the schema\'s rule required: ["order"]'),
    ({"properties": {"a": {"type": "integer"}}}, {"a": SECRET}, "$.a breaks"),
    ({"$ref": "http://127.0.0.1:9/fetched"}, {}, "cannot be used"),
    ({"$ref": "#/$defs/absent"}, {}, "cannot be used"),
    ({"type": 7}, {}, "cannot be used"),
    ({"$schema": 7}, {}, "cannot be used"),
    ({"$schema": "https://example.com/unknown", "required": ["a"]}, {}, "rule required"),
    ({"properties": {"a": {"multipleOf": 0.1}}}, {"a": 10**400}, "cannot be used"),
]


def judged(schema: Any, arguments: Any) -> Finding:
    directive = SeenDirective({"tool": "x", "arguments": arguments})
    target = {"name": "x", "inputSchema": schema}
    result = ResultWithDirective(
        step="step",
        messages=(),
        directive=directive,
        content=(),
        declared=True,
        structured={},
        output_schema={},
        target=target,
        listed=["x"],
    )
    found = arguments_valid(result)
    assert isinstance(found, Finding)
    return found


@pytest.mark.parametrize(
    ("schema", "arguments", "seen"), MISFITS, ids=lambda value: str(value)[:50]
)
def test_arguments_that_nothing_vouches_for(schema: Any, arguments: Any, seen: str) -> None:
    found = judged(schema, arguments)
    assert not found.holds
    assert seen in found.seen
    assert SECRET not in found.seen


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"type": "integer"}}, "required": ["a"]},
        {"$ref": "#/$defs/x", "$defs": {"x": {"required": ["a"]}}},
        {"$schema": "http://json-schema.org/draft-07/schema#", "required": ["a"]},
        {"$schema": "https://example.com/unknown", "required": ["a"]},
    ],
    ids=str,
)
def test_arguments_that_meet_the_schema(schema: Any) -> None:
    assert judged(schema, {"a": 1}).holds
