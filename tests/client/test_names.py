"""What a person is shown of the ids in a call: the names that the same server gave them."""

from typing import Any

import pytest

from banking_server.client.names import MAX_IDS, Names
from tool_chaining.content import Json

pytestmark = pytest.mark.quick


def result(structured: Any = None, *texts: str, is_error: bool = False) -> Json:
    content = [{"type": "text", "text": text} for text in texts]
    return {"content": content, "structuredContent": structured, "isError": is_error}


def learnt(said: Any) -> Names:
    """Return the names that are known after this result, or this structured content."""
    names = Names()
    names.add_result("one", said if isinstance(said, dict) and "isError" in said else result(said))
    return names


@pytest.mark.parametrize(
    ("said", "arguments", "lines"),
    [
        ({"id": "d1", "name": "Oak"}, {"door": "d1"}, ["door: Oak (d1)"]),
        (result(None, '{"id": "d1", "name": "Oak"}'), {"doorId": "d1"}, ["door: Oak (d1)"]),
        # Whose name it is would be a guess.
        ({"aId": "d1", "bId": "d2", "name": "Oak"}, {"aId": "d1"}, ["a: d1"]),
        # None of two names is preferred; the newest is among those that are shown.
        ([{"id": "1", "name": n} for n in "DCBA"], {"xId": "1"}, ["x: D or B or A (1)"]),
        # What is called like another id, or could pass for another name, stands in quotes.
        ([{"id": "1", "name": "2"}, {"id": "2"}], {"xId": "1"}, ['x: "2" (1)']),
        ({"id": "1", "name": "\u0405avings"}, {"xId": "1"}, ['x: "\u0405avings" (1)']),
        ({}, {"xId": " 1"}, ['x: "\u24231", which this server has not named']),
        # An error repeats what the caller made up.
        (
            result({"id": "d1", "name": "Oak"}, is_error=True),
            {"doorId": "d1"},
            ["door: d1, which this server has not named"],
        ),
        (
            result(None, "- rx_100: Amoxiline, 2 left.\n Oak (d-1) \nThe book b-1 is overdue."),
            {"rxId": "rx_100", "door": "d-1", "book": "b-1"},
            ["rx: Amoxiline, 2 left (rx_100)", "door: Oak (d-1)", "book: b-1"],
        ),
        (result(None, "no JSON"), {"doorId": "d1"}, ["door: d1, which this server has not named"]),
        (result(None, "[" * 100_000), {"doorId": None}, []),
        (
            {"ids": []},
            {"doorIds": ["d1", 2], "steps": [{"id": "1", "arguments": {"fromDoorId": "d2"}}]},
            [
                "door: d1, which this server has not named",
                "from door: d2, which this server has not named",
            ],
        ),
    ],
    ids=range(12),
)
def test_names_are_learnt_from_what_a_server_returns(
    said: Any, arguments: dict[str, Any], lines: list[str]
) -> None:
    assert learnt(said).id_lines("one", arguments) == lines


def test_what_is_remembered_and_shown_is_bounded() -> None:
    names = Names()
    for first in range(0, 2 * MAX_IDS, 100):
        many = [{"id": f"d{n}", "name": f"Door {n}"} for n in range(first, first + 100)]
        names.add_result("one", result({"doors": many}))
    assert names.returned("one", "doorId")[0] == f"d{MAX_IDS} (Door {MAX_IDS})"
    newest = 2 * MAX_IDS - 1
    assert names.id_lines("one", {"doorId": f"d{newest}"}) == [f"door: Door {newest} (d{newest})"]
    # What one server says names nothing of another's.
    assert "which this server has not named" in names.id_lines("two", {"doorId": f"d{newest}"})[0]
    assert names.id_lines("one", {"doorIds": [f"d{n}" for n in range(50)]})[-1] == "and 40 more ids"
    # Nothing that the call itself names is hidden behind others.
    many = {"doorIds": [f"d{n}" for n in range(50)]} | {f"a{n}Id": "x" for n in range(11)}
    shown = names.id_lines("one", {**many, "toId": "y"})
    assert [line.partition(":")[0] for line in shown[-2:]] == ["to", "and 50 more ids"]


@pytest.mark.parametrize(
    ("said", "arguments", "unnamed"),
    [
        (result(None, "rx_100: Amoxiline."), {"id": "rx_100"}, []),
        (result(None, "rx_100: Amoxiline."), {"id": "rx_10"}, [("id", "rx_10")]),
        (result({"result": "See rx_100, please."}), {"drugId": "rx_100"}, []),
        ({"orders": [{"id": 7}]}, {"order_id": 7, "other_ids": [7, 8]}, [("other_ids", "8")]),
        # A name is no id, and stands for none.
        ({"text": "Oak Door"}, {"doorId": "Oak Door"}, [("doorId", "Oak Door")]),
        ({}, {"what": "d1", "words": "two words", "note": "d2"}, [("what", "d1")]),
        ({}, {"order_number": "A7", "number": 3, "steps": [{"id": 1}]}, [("order_number", "A7")]),
        # An id of another kind of thing is none of this kind.
        (
            {"accountId": "acc_1", "id": "x_1"},
            {"transferId": "acc_1", "fromAccountId": "acc_1", "payeeId": "x_1"},
            [("transferId", "acc_1")],
        ),
    ],
    ids=range(8),
)
def test_an_id_is_known_by_what_the_server_said(
    said: Any, arguments: dict[str, Any], unnamed: list[tuple[str, str]]
) -> None:
    described = {"description": "The id of it."}
    schema = {"properties": {"what": described, "words": described}}
    assert learnt(said).unnamed("one", arguments, schema) == unnamed
