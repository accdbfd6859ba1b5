"""What a person at a terminal is shown of a chain."""

from typing import Any

import pytest
from mcp.types import Annotations, CallToolResult, TextContent

from banking_server.host.narrator import shown_to_user

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
