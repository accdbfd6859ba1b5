"""Which content of a result is shown to the person at the terminal."""

from typing import Any

import pytest
from mcp.types import Annotations, CallToolResult, TextContent

from banking_server.host.narrator import shown_to_user
from banking_server.host.plain import quoted_name

pytestmark = pytest.mark.quick


def test_a_name_cannot_leave_its_quotes() -> None:
    assert quoted_name('order" was called\ncall        b') == '"order\\" was called call b"'


def text(words: str, *audience: Any) -> TextContent:
    annotations = Annotations(audience=list(audience)) if audience else None
    return TextContent(type="text", text=words, annotations=annotations)


def test_what_is_for_the_model_alone_is_not_shown() -> None:
    content = [text("everybody"), text("user", "user"), text("both", "user", "assistant")]
    for_the_model = text("assistant", "assistant")
    hidden = {"hidden": True}
    result = CallToolResult(content=[for_the_model, *content], structured_content=hidden)
    assert shown_to_user(result) == ["everybody", "user", "both"]
    result = CallToolResult(content=[for_the_model], structured_content=hidden)
    assert shown_to_user(result) == []
