"""What `tools/list` says of the bank's tools, and that they keep to it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from jsonschema.validators import Draft202012Validator
from mcp.types import Tool

from banking_server import MOVES_MONEY
from banking_server.tools import TOOLS, required_scope
from banking_server.tools.declaration import NoDescription, bank_tool
from tool_chaining.content import has_next_step

from ..kit.bank import World, copy_of
from ..kit.words import (
    ACCOUNTS,
    APPROVAL,
    BALANCE,
    CHOICE,
    CONFIRM,
    HANDOFF,
    PREPARE,
    REPORT,
    STATEMENT,
)

pytestmark = [pytest.mark.anyio, pytest.mark.quick]


HINTS = {
    ACCOUNTS: (True, False, True),
    BALANCE: (True, False, True),
    STATEMENT: (True, False, True),
    PREPARE: (False, False, True),
    CONFIRM: (False, True, True),
    HANDOFF: (False, False, True),
    CHOICE: (False, False, True),
    APPROVAL: (False, False, True),
    REPORT: (False, False, True),
}
"""readOnlyHint, destructiveHint, idempotentHint."""


async def listed(world: World, mode: str = "auto") -> dict[str, Tool]:
    async with world.customer(mode=mode) as customer:
        tools = (await customer.client.list_tools()).tools
        again = (await customer.client.list_tools(cache_mode="refresh")).tools
    assert tools == again
    return {tool.name: tool for tool in tools}


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory, filled: Path) -> dict[str, Tool]:
    """The tools as a client sees them."""
    return anyio.run(listed, World(copy_of(filled, tmp_path_factory.mktemp("bank"))))


@pytest.mark.parametrize("name", [tool.name for tool in TOOLS])
def test_every_tool_describes_itself_to_the_model(tools: dict[str, Tool], name: str) -> None:
    tool = tools[name]
    assert tool.title
    assert tool.title != tool.name
    assert len((tool.description or "").split()) >= 10
    assert "\n" not in (tool.description or "")
    schema = tool.input_schema
    Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    for argument_name, argument in schema["properties"].items():
        assert len(argument.get("description", "")) >= 20, argument_name
        assert "customer" not in argument_name.lower()
    assert tool.output_schema is not None
    Draft202012Validator.check_schema(tool.output_schema)
    assert tool.annotations is not None
    assert tool.annotations.open_world_hint is False


@pytest.mark.parametrize("name", HINTS)
def test_hints_are_those_of_the_contract(tools: dict[str, Tool], name: str) -> None:
    hints = tools[name].annotations
    assert hints is not None
    assert (
        hints.read_only_hint,
        hints.destructive_hint,
        hints.idempotent_hint,
    ) == HINTS[name]


def test_a_tool_without_a_docstring_is_refused() -> None:
    """As with `python -OO`, which leaves all of them out."""

    def undocumented() -> None: ...

    with pytest.raises(NoDescription, match=r"^The tool undocumented has no description"):
        bank_tool(title="Undocumented", scope="bank:read")(undocumented)


def test_each_tool_requires_its_scope() -> None:
    reading = {ACCOUNTS, BALANCE, STATEMENT, HANDOFF, CHOICE}
    for name in HINTS:
        assert required_scope(name) == ("bank:read" if name in reading else "bank:transfer")
    assert required_scope("no such tool") is None


def test_exactly_the_tools_that_move_money_are_marked(tools: dict[str, Tool]) -> None:
    saying = {name for name, tool in tools.items() if (tool.meta or {}).get(MOVES_MONEY) is True}
    assert saying == {CONFIRM, "multiplex_tools"}


def test_exactly_the_tools_that_can_name_a_next_tool_declare_it(
    tools: dict[str, Tool],
) -> None:
    declared = {name for name, tool in tools.items() if has_next_step(tool.output_schema or {})}
    assert declared == {PREPARE, CONFIRM, APPROVAL, "multiplex_tools"}


# --- as frameworks convert the schemas ------------------------------------------------------------

RULES = {"type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref"}
"""Keywords that say what a value is. Some frameworks refuse a schema that has none of them."""


SCHEMAS = [
    pytest.param(schema, id=f"{tool.name}-{kind}")
    for tool in TOOLS
    for kind, schema in (("input", tool.parameters), ("output", tool.output_schema))
]


def members(node: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every property anywhere in a schema, with what the schema says of it."""
    if isinstance(node, list):
        for each in node:
            yield from members(each)
    elif isinstance(node, dict):
        for keyword, rule in node.items():
            if keyword == "properties":
                yield from rule.items()
                yield from members(list(rule.values()))
            elif keyword not in ("default", "enum", "const", "required"):
                yield from members(rule)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_schemas_are_valid_for_agent_frameworks(schema: dict[str, Any]) -> None:
    """An agent of LangChain crashes on a property that is named like a reference."""
    for name, rule in members(schema):
        assert not name.startswith("$"), name
        assert RULES & rule.keys(), name
    assert schema["type"] == "object"
