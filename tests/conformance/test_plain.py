"""What a target sent, as reports show it: every line of it, and which belong to a fault."""

import pytest

from banking_server.conformance.message import WireMessage
from banking_server.conformance.report.keeping import Place
from banking_server.conformance.report.plain import message_lines

pytestmark = pytest.mark.quick

NEXT_TOOL = "/result/_meta/nextTool"


def reply(content: int, meta: dict[str, object]) -> WireMessage:
    texts = [{"type": "text", "text": f"Item {number} \u202e"} for number in range(content)]
    return WireMessage("server", {"id": 1, "result": {"content": texts, "_meta": meta}})


def test_the_member_at_fault_is_marked_and_nothing_else() -> None:
    message = reply(2, {"nextTool": {"name": "keep"}})
    lines = message_lines(message, Place(NEXT_TOOL, message))
    assert [text.strip() for text, marked in lines if marked] == ['"nextTool": {"name": "keep"}']
    assert any("\\u202e" in text for text, _ in lines)
    assert not any(marked for _, marked in message_lines(message, None))


def test_where_a_member_is_missing_what_should_have_it_is_marked() -> None:
    message = reply(1, {"other": True})
    place = Place(NEXT_TOOL, message)
    marked = [text.strip() for text, is_marked in message_lines(message, place) if is_marked]
    assert marked == ['"_meta": {"other": true}']


def test_a_long_message_is_folded_around_the_member_at_fault() -> None:
    message = reply(200, {"nextTool": {"tool": 7}})
    lines = message_lines(message, Place(NEXT_TOOL, message))
    assert len(lines) < 80
    assert any(text.endswith(" lines") for text, _ in lines)
    assert sum(marked for _, marked in lines) == 1
