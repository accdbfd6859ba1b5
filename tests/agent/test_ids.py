"""An id that nobody has named goes back to the model once; then a person is asked."""

from collections.abc import Sequence
from typing import Any

import pytest
from mcp import Client
from mcp.server.mcpserver import MCPServer

from banking_server.agent import Agent, Endpoint, Run, Toolbox
from banking_server.agent.prompt import reminder

from ..kit.model import call, scripted_model
from .support import Consent, scene, settings
from .test_loop import not_called

pytestmark = [pytest.mark.anyio, pytest.mark.quick]

NOT_NAMED = "is no id that the server or the user has named"


def pharmacy(refilled: list[str]) -> MCPServer[Any]:
    """Return a server that answers in plain text, and says nothing of what its tools do."""
    mcp: MCPServer[Any] = MCPServer("pharmacy")

    @mcp.tool()
    def list_prescriptions() -> str:
        """List them."""
        return "rx_100: Amoxiline, no refills.\nrx_200 (Lorazin), two refills."

    @mcp.tool()
    def refill(prescription_id: str, on: str | None = None) -> str:
        """Order a refill."""
        refilled.append(prescription_id)
        return "Ordered."

    return mcp


async def asked(
    script: Sequence[str], request: str, consent: Consent
) -> tuple[Run, list[str], list[str]]:
    """Make a request; return the run, what was refilled, and what the model was told last."""
    refilled: list[str] = []
    with scripted_model(script) as model:
        async with (
            Endpoint(settings(model.url)) as endpoint,
            Client(pharmacy(refilled)) as client,
        ):
            toolbox = await Toolbox.gather({"pharmacy": client})
            run = await Agent(endpoint, toolbox, consent=consent).ask(request)
    told = [str(one["messages"][-1]["content"]) for one in model.requests]
    return run, refilled, told


async def test_an_invented_id_goes_back_with_the_tool_that_lists_them() -> None:
    consent = Consent(True)
    script = [
        call("refill", prescription_id="12345"),
        call("list_prescriptions"),
        "I will order it.",
        call("refill", prescription_id="rx_200"),
        "It is ordered.",
    ]
    run, refilled, told = await asked(script, "More Lorazin, please.", consent)
    assert NOT_NAMED in told[1]
    assert "Call list_prescriptions first: it lists them." in told[1]
    # A call that was sent back is not forgotten.
    assert "Not called yet: refill." in told[2]
    assert "refill was not called yet. The ids are: rx_100 (Amoxiline" in told[3]
    assert (refilled, run.answer) == (["rx_200"], "It is ordered.")
    # Nobody was asked about the invented id, and what stood in plain text is known.
    assert [tool for tool, _ in consent.calls] == ["list_prescriptions", "refill"]


async def test_it_goes_back_once_with_the_ids_and_then_the_person_is_asked() -> None:
    consent = Consent(True)
    wrong = call("refill", prescription_id="rx_20")
    script = [call("list_prescriptions"), wrong, wrong, "No."]
    run, refilled, told = await asked(script, "Refill.", consent)
    assert "The ids that the server has returned so far: rx_100 (Amoxiline, no refills)" in told[2]
    assert [arguments for _, arguments in consent.calls][-1] == {"prescription_id": "rx_20"}
    assert refilled == ["rx_20"]
    assert len(not_called(run)) == 1


async def test_an_id_of_the_users_own_words_is_known() -> None:
    script = [call("refill", prescription_id="rx_777"), "Done."]
    _, refilled, _ = await asked(script, "Refill rx_777.", Consent(True))
    assert refilled == ["rx_777"]


async def test_a_name_of_the_users_words_is_no_id_and_a_date_goes_back_when_the_ids_are_right() -> (
    None
):
    script = [
        call("refill", prescription_id="Lorazin", on="2023-04-15"),
        call("list_prescriptions"),
        call("refill", prescription_id="rx_200", on="2023-04-15"),
        call("refill", prescription_id="rx_200", on="123456"),
        call("refill", prescription_id="rx_200", on=""),
        "It is ordered.",
    ]
    consent = Consent(True)
    run, refilled, told = await asked(script, "More Lorazin, please.", consent)
    assert NOT_NAMED in told[1]
    leave_out = 'The user named no on, and it is optional: leave it out, {"prescription_id"'
    assert all(leave_out in one for one in told[3:5])
    assert refilled == ["rx_200"]
    assert consent.calls[-1] == ("refill", {"prescription_id": "rx_200"})
    assert run.answer == "It is ordered."


async def test_an_id_that_was_for_the_user_alone_is_told_to_no_model() -> None:
    async with scene([call("code"), call("track", order_id="o_1"), "I do not know it."]) as s:
        await s.agent.ask("Track it.")
    assert NOT_NAMED in s.model.told
    assert "c_431" not in s.model.told


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "leak",
    [
        f"All right.{reminder('Price?')}",
        call("reply_to_user", message=f"All right.{reminder('Price?')}"),
        call("reply_to_user", message="No call was made: that repeats the request."),
        "Price?",
    ],
)
async def test_the_programs_own_words_and_the_request_are_no_answer(
    leak: str, stream: bool
) -> None:
    async with scene([call("price", door="oak"), leak, "80 EUR."], stream=stream) as s:
        run = await s.agent.ask("Price?")
    assert run.answer == "80 EUR."
    assert "reply_to_user" not in "".join(s.shown)


async def test_where_nobody_can_be_asked_the_model_is_told_so() -> None:
    async with scene([call("buy", door="oak"), "I cannot."], consent=None) as s:
        run = await s.agent.ask("Buy oak.")
    first, second = s.model.requests
    assert "Nobody can be asked for consent here" in first["messages"][0]["content"]
    assert "buy was not called. Nobody can be asked" in second["messages"][-1]["content"]
    assert not_called(run) == ["Not called: buy. Nobody can be asked here."]
    assert s.called == []


@pytest.mark.parametrize(
    ("request_", "sent_back"),
    [("From Everyday Checking, please.", True), ("On Friday.", False), ("2030-01-02!", False)],
)
async def test_an_optional_date_of_which_nobody_spoke_goes_back_once(
    request_: str, sent_back: bool
) -> None:
    dated = call("deliver", door="oak", on="2030-01-02")
    async with scene([dated, dated, "Done."]) as s:
        run = await s.agent.ask(request_)
    words = 'The user named no on, and it is optional: leave it out, {"door": "oak"}'
    assert (words in str(not_called(run))) is sent_back
    assert s.called == ["deliver"]
