"""What a person at a terminal is shown of a chain."""

import io
from typing import Any

import pytest
from mcp.types import Annotations, CallToolResult, TextContent, Tool

from banking_server.chaining import Proposal, Step
from banking_server.host.narrator import Narrator, shown_to_user
from banking_server.host.printing import console

pytestmark = pytest.mark.quick


def text(words: str, *audience: Any) -> TextContent:
    annotations = Annotations(audience=list(audience)) if audience else None
    return TextContent(type="text", text=words, annotations=annotations)


def test_what_is_for_the_model_alone_is_not_shown() -> None:
    result = CallToolResult(
        content=[
            text("everybody"),
            text("user", "user"),
            text("assistant", "assistant"),
            text("both", "user", "assistant"),
        ],
        structured_content={"hidden": True},
    )
    assert shown_to_user(result) == ["everybody", "user", "both"]
    only_the_model = CallToolResult(content=[text("x", "assistant")], structured_content={"a": 1})
    assert shown_to_user(only_the_model) == []


def test_a_follow_up_is_shown_with_the_directive_that_asks_for_it() -> None:
    out = io.StringIO()
    narrator = Narrator(console(out), questions=None)
    directive = {"tool": "order", "arguments": {"door": "oak"}}
    result = CallToolResult(content=[text("none left")], _meta={"nextTool": directive})
    narrator.told(Step(1, "reserve", {}, result))
    order = Tool(name="order", input_schema={"type": "object"})
    title = "Order one\nfrom the \x1bmaker"
    narrator.proposed(Proposal(order, {"door": "oak"}, 2, "reserve", title))
    assert out.getvalue() == (
        "\n   none left\n"
        "\n2. order\n"
        '   with     {"door": "oak"}\n'
        "   because  reserve said so: _meta.nextTool = "
        '{"tool": "order", "arguments": {"door": "oak"}}\n'
        '   the server says: "Order one\\nfrom the \\u001bmaker"\n'
    )
