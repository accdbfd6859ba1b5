"""Which content of a result is shown to the person at the terminal."""

import pytest

from banking_server.client.narrator import shown_to_user
from banking_server.client.plain import quoted_name
from tool_chaining.content import Json

pytestmark = pytest.mark.quick


def test_a_name_cannot_leave_its_quotes() -> None:
    assert quoted_name('order" was called\ncall        b') == '"order\\" was called call b"'


def text(words: str, *audience: str) -> Json:
    annotations = {"annotations": {"audience": [*audience]}} if audience else {}
    return {"type": "text", "text": words, **annotations}


def test_what_is_for_the_model_alone_is_not_shown() -> None:
    content = [text("everybody"), text("user", "user"), text("both", "user", "assistant")]
    for_the_model = text("assistant", "assistant")
    hidden = {"hidden": True}
    result = {"content": [for_the_model, *content], "structuredContent": hidden}
    assert shown_to_user(result) == ["everybody", "user", "both"]
    assert shown_to_user({**result, "content": [for_the_model]}) == []
