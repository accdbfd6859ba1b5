"""An id that nobody has named goes back to the model once; then a person is asked."""

import pytest

from banking_server.agent.prompt import reminder

from ..kit.model import call
from .support import Consent, not_called, scene

pytestmark = [pytest.mark.anyio, pytest.mark.quick]

NOT_NAMED = "is no id that the server or the user has named"


async def test_an_invented_id_goes_back_with_the_tool_that_lists_them() -> None:
    consent = Consent()
    script = [
        call("deliver", delivery_id="12345"),
        call("list_deliveries"),
        "I will deliver it.",
        call("deliver", delivery_id="rx_200"),
        "It is on its way.",
    ]
    async with scene(script, consent=consent) as s:
        run = await s.agent.ask("My elm door, please.")
    assert NOT_NAMED in s.told[1]
    assert "Call list_deliveries first: it lists them." in s.told[1]
    # A call that was sent back is not forgotten.
    assert "Not called yet: deliver." in s.told[2]
    assert "deliver was not called yet. The ids are: rx_100 (an oak door" in s.told[3]
    assert s.calls == [("deliver", {"delivery_id": "rx_200"})]
    assert run.answer == "It is on its way."
    # Nobody was asked about the invented id, and what stood in plain text is known.
    assert [tool for tool, _ in consent.calls] == ["list_deliveries", "deliver"]


async def test_it_goes_back_once_with_the_ids_and_then_the_person_is_asked() -> None:
    consent = Consent()
    wrong = call("deliver", delivery_id="rx_20")
    async with scene([call("list_deliveries"), wrong, wrong, "No."], consent=consent) as s:
        run = await s.agent.ask("Deliver.")
    assert "The ids that the server has returned so far: rx_100 (an oak door)" in s.told[2]
    assert consent.calls[-1] == ("deliver", {"delivery_id": "rx_20"})
    assert s.called == ["deliver"]
    assert len(not_called(run)) == 1


async def test_a_name_of_the_users_words_is_no_id_and_a_date_goes_back_when_the_ids_are_right() -> (
    None
):
    script = [
        call("deliver", delivery_id="elm", on="2023-04-15"),
        call("list_deliveries"),
        call("deliver", delivery_id="rx_200", on="2023-04-15"),
        call("deliver", delivery_id="rx_200", on="now"),
        call("deliver", delivery_id="rx_200", on=""),
        "It is on its way.",
    ]
    consent = Consent()
    async with scene(script, consent=consent) as s:
        await s.agent.ask("My elm door, please.")
    assert NOT_NAMED in s.told[1]
    leave_out = (
        "The user named no on, and it is optional. Leave it out, and reply: "
        '{"tool": "deliver", "arguments": {"delivery_id": "rx_200"}}'
    )
    assert all(leave_out in one for one in s.told[3:5])
    assert consent.calls[-1] == ("deliver", {"delivery_id": "rx_200"})
    assert s.called == ["deliver"]


@pytest.mark.parametrize(
    ("words", "sent_back"),
    [("From Everyday Checking, please.", True), ("On Friday.", False), ("2030-01-02!", False)],
)
async def test_what_the_user_names_does_not_go_back(words: str, sent_back: bool) -> None:
    dated = call("deliver", delivery_id="rx_777", on="2030-01-02")
    script = [dated, *[dated] * sent_back, "Done."]
    async with scene(script) as s:
        run = await s.agent.ask(f"Deliver rx_777. {words}")
    assert bool(not_called(run)) is sent_back
    assert (s.called, run.answer) == (["deliver"], "Done.")


@pytest.mark.parametrize("typed", ["rx_777", "INV/2024/7", "88.213", "ada@example.org"])
async def test_an_id_that_the_user_typed_is_known(typed: str) -> None:
    async with scene([call("deliver", delivery_id=typed), "Done."]) as s:
        run = await s.agent.ask(f"Deliver {typed}.")
    assert (s.called, not_called(run)) == (["deliver"], [])


async def test_an_id_that_was_for_the_user_alone_is_told_to_no_model() -> None:
    async with scene([call("code"), call("deliver", delivery_id="o_1"), "I do not know it."]) as s:
        await s.agent.ask("Deliver it.")
    assert NOT_NAMED in s.model.told
    assert "c_431" not in s.model.told


@pytest.mark.parametrize(
    "leak",
    [
        f"All right.{reminder('Price?')}",
        call("reply_to_user", message=f"All right.{reminder('Price?')}"),
        call("reply_to_user", message="No call was made: that repeats the request."),
        "OK. the user's\nrequest was: ...",
        "Price?",
    ],
)
async def test_the_programs_own_words_and_the_request_are_no_answer(leak: str) -> None:
    async with scene([call("price", door="oak"), leak, "80 EUR."], stream=True) as s:
        run = await s.agent.ask("Price?")
    assert run.answer == "80 EUR."
    assert "reply_to_user" not in "".join(s.shown)
