"""The schemas of tools and questions, as frameworks convert them and forms show them."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from banking_server.tools import TOOLS

pytestmark = [pytest.mark.anyio, pytest.mark.quick]

RULES = {"type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref"}
"""Keywords that say what a value is. Some frameworks refuse a schema that has none of them."""

OWN_TITLES = {
    "id": "ID",
    "jsonrpc": "JSON-RPC",
    "jmespath": "JMESPath expression",
}
"""What names alone do not give."""

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
def test_frameworks_can_digest_every_schema(schema: dict[str, Any]) -> None:
    """An agent of LangChain crashes on a property that is named like a reference."""
    for name, rule in members(schema):
        assert not name.startswith("$"), name
        assert RULES & rule.keys(), name
    assert schema["type"] == "object"


@pytest.mark.parametrize("schema", SCHEMAS)
def test_every_member_has_a_title_that_people_read(schema: dict[str, Any]) -> None:
    for name, rule in members(schema):
        is_read(name, rule["title"])


def is_read(name: str, title: str) -> None:
    """Words in lower case after the first letter, and the name's own."""
    if name in OWN_TITLES:
        assert title == OWN_TITLES[name]
    else:
        assert re.fullmatch("[A-Z][a-z]*( [a-z]+)*", title), title
        assert title.replace(" ", "").lower() == re.sub("(?<=[a-z])Id$", "", name).lower()
