"""Reading `_meta.nextTool`, and writing it; reading what a request says about its chain."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.types import CallToolResult, TextContent

from tool_chaining import IDENTIFIER, META_KEY, read_directive, with_next_tool
from tool_chaining.directive import Found, Malformed
from tool_chaining.provenance import read_provenance

pytestmark = pytest.mark.quick


def test_nesting_without_end_is_read_without_an_exception() -> None:
    deep: Any = []
    deeper: Any = []
    for _ in range(100_000):
        deep, deeper = [deep], [deeper]

    assert isinstance(read_directive({META_KEY: deep}), Malformed)
    assert isinstance(read_directive({META_KEY: {"tool": deep, "name": deeper}}), Malformed)
    assert isinstance(read_directive({META_KEY: {"tool": "t", "arguments": {"a": deep}}}), Found)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
MEMBERS = st.sampled_from(["tool", "name", "arguments", "title", "x-other"])


@given(st.dictionaries(MEMBERS, JSON | st.sampled_from(["a", "b", {}, {"n": 1}])) | JSON)
def test_any_value_is_read_as_found_or_malformed(value: Any) -> None:
    """Never an exception; what is found can be sent, and is read as the same again."""
    meta = {META_KEY: value}
    reading = read_directive(meta)
    assert isinstance(reading, Found | Malformed)
    if isinstance(reading, Malformed):
        assert reading.reason.startswith(META_KEY)
        assert reading.reason.isprintable()
    else:
        sent = json.loads(json.dumps(reading.directive.to_wire()))
        assert read_directive({META_KEY: sent}) == reading
        assert (value.get("tool", value.get("name")), value.get("arguments", {})) == (
            reading.directive.tool,
            reading.directive.arguments,
        )


def test_a_directive_goes_on_a_text_on_content_or_on_a_whole_result() -> None:
    text = TextContent(type="text", text="Hello.")
    whole = CallToolResult(content=[text], _meta={META_KEY: {"tool": "next", "arguments": {}}})
    for said in ("Hello.", [text], CallToolResult(content=[text])):
        assert with_next_tool(said, "next") == whole


FIRST = {"chainId": "c", "level": 1}
LATER = {"chainId": "c", "level": 2, "previousTool": "t"}


@pytest.mark.parametrize(
    "wire",
    [
        *(None, [], "c", {}, {"chainId": "c"}, {"level": 1}, {"chain_id": "c", "level": 1}),
        *({**FIRST, "chainId": id_} for id_ in ("", "c" * 129, 5, None, "\ud800")),
        *({**FIRST, "level": level} for level in (0, -1, True, "1", 1.5, None, 2)),
        *({**FIRST, "previousTool": tool} for tool in (None, "t")),
        *({**LATER, "previousTool": tool} for tool in (None, "", 5)),
        {**LATER, "level": 1e400},
    ],
)
def test_malformed_provenance_is_ignored(wire: object) -> None:
    assert read_provenance({IDENTIFIER: wire}) is None
