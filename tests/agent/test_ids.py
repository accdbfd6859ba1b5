"""An id that nobody has named goes back to the model once; then a person is asked."""

import pytest

from banking_server.client.agent.prompt import reminder

from ..kit.model import call
from .support import not_called, scene

pytestmark = [pytest.mark.anyio, pytest.mark.quick]

NAMED, DATED = {"delivery_id": "rx_200"}, {"delivery_id": "rx_200", "on": "2030-01-02"}


async def test_what_nobody_named_goes_back_once_and_then_the_person_is_asked() -> None:
    """A name in the user's words is no id. A date goes back when the ids are right."""
    script = [
        call("deliver", delivery_id="elm", on="2030-01-02"),
        call("list_deliveries"),
        "I will deliver it.",
        call("deliver", **DATED),
        call("deliver", **NAMED, on="now"),
        call("deliver", **NAMED, on=""),
        "It is on its way.",
        call("deliver", delivery_id="rx_20"),
        call("deliver", delivery_id="rx_20"),
        "No.",
    ]
    async with scene(script) as s:
        run = await s.agent.ask("My elm door, please.")
        again = await s.agent.ask("And the other one.")
    assert "is no id that the server or the user has named" in s.told[1]
    assert "Call list_deliveries first: it lists them." in s.told[1]
    # A call that was sent back is not forgotten.
    assert "Not called yet: deliver." in s.told[2]
    assert "deliver was not called yet. The ids are: rx_100 (an oak door" in s.told[3]
    leave_out = (
        "The user named no on, and it is optional. Leave it out, and reply: "
        '{"tool": "deliver", "arguments": {"delivery_id": "rx_200"}}'
    )
    assert all(leave_out in one for one in s.told[4:6])
    assert run.answer == "It is on its way."
    assert "The ids that the server has returned so far: rx_100 (an oak door)" in s.told[8]
    assert (again.answer, len(not_called(again))) == ("No.", 1)
    # What stood in plain text is known. Nobody was asked about the rest before the model was.
    asked = [NAMED, {"delivery_id": "rx_20"}]
    assert s.calls == [("deliver", arguments) for arguments in asked]
    assert s.consent.asked == [("list_deliveries", {}), *s.calls]


async def test_a_tool_that_reads_may_list_ids_if_none_says_that_it_does() -> None:
    tools = ("price", "deliver", "on_their_way")
    async with scene([call("deliver", delivery_id="elm"), "Which one?"], allowed=tools) as s:
        await s.agent.ask("My elm door, please.")
    assert "Call on_their_way first: it may list them." in s.told[1]


async def test_an_error_names_ids_but_not_those_that_it_repeats() -> None:
    wrong, right = (call("deliver", delivery_id=id_) for id_ in ("rx_9", "rx_400"))
    async with scene([wrong, wrong, right, "Done.", wrong, wrong, "No."]) as s:
        run = await s.agent.ask("My door, please.")
        again = await s.agent.ask("And the other one.")
    for one in (run, again):
        (told,) = not_called(one)
        assert "is no id that the server or the user has named" in told
    assert [given["delivery_id"] for _, given in s.calls] == ["rx_9", "rx_400", "rx_9"]


@pytest.mark.parametrize(
    ("words", "wanted", "sent_back"),
    [
        ("rx_200. From Everyday Checking.", call("deliver", **DATED), True),
        ("rx_200. On Friday.", call("deliver", **DATED), False),
        ("Oak, since it is Broken.", call("order", door="Oak", reason="broken"), False),
        ("INV/2024/7.", call("deliver", delivery_id="INV/2024/7"), False),
        ("88.213.", call("deliver", delivery_id="88.213"), False),
        ("ada@example.org.", call("deliver", delivery_id="ada@example.org"), False),
    ],
)
async def test_what_the_user_names_does_not_go_back(
    words: str, wanted: str, sent_back: bool
) -> None:
    async with scene([wanted, *[wanted] * sent_back, "Done."]) as s:
        run = await s.agent.ask(f"Deliver {words}")
    assert bool(not_called(run)) is sent_back
    assert (len(s.calls), run.answer) == (1, "Done.")


@pytest.mark.parametrize(
    "leak",
    [
        f"All right.{reminder('Price?')}",
        call("reply_to_user", message=f"All right.{reminder('Price?')}"),
        call("reply_to_user", message="No call was made: there is no such tool."),
        "You must know that repeats the request.",
        "The user declined the call: do not make it again.",
        "Door: if all of it is done, stop.",
        "Do nothing that was not asked for.",
        "It failed. Tell the user so.",
        "buy was not called yet.",
        "Answer it now, from the results above.",
        "OK. the user's\nrequest was: ...",
        "Price?",
    ],
)
async def test_the_programs_own_words_and_the_request_are_no_answer(leak: str) -> None:
    async with scene([call("price", door="oak"), leak, "80 EUR."]) as s:
        run = await s.agent.ask("Price?")
    assert run.answer == "80 EUR."
