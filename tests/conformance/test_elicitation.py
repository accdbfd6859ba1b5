"""What the suite says, in the part of a user, to a server's questions."""

from typing import Any

import pytest

from banking_server.conformance.target.channel import Unanswerable
from banking_server.conformance.target.elicitation import Answers, ElicitationAnswer

FORM = {"type": "object", "properties": {"first": {"type": "string"}, "second": {}}}
YES = ElicitationAnswer(action="accept", value="yes")


@pytest.mark.parametrize(
    ("answer", "form", "sent"),
    [
        (YES, FORM, {"action": "accept", "content": {"first": "yes"}}),
        (YES, {}, {"action": "accept", "content": {}}),
        (YES, {"properties": "none"}, {"action": "accept", "content": {}}),
        (
            ElicitationAnswer(action="accept", content={"second": 2}),
            FORM,
            {"action": "accept", "content": {"second": 2}},
        ),
        (ElicitationAnswer(action="accept"), FORM, {"action": "accept", "content": {}}),
        (ElicitationAnswer(action="decline"), FORM, {"action": "decline"}),
        (ElicitationAnswer(action="cancel"), FORM, {"action": "cancel"}),
    ],
)
def test_an_answer_on_the_wire(answer: ElicitationAnswer, form: Any, sent: Any) -> None:
    assert answer.to_wire(form) == sent


def test_a_ping_is_answered_and_takes_no_answer_away() -> None:
    answers = Answers([YES])
    assert answers("ping", {}) == {}
    assert answers("elicitation/create", {"requestedSchema": FORM})["action"] == "accept"


def test_the_suite_has_no_model_to_be_asked() -> None:
    with pytest.raises(Unanswerable):
        Answers([YES])("sampling/createMessage", {})


@pytest.mark.parametrize(
    ("question", "action"),
    [
        ({"method": "elicitation/create", "params": {"requestedSchema": FORM}}, "accept"),
        ({"method": "elicitation/create", "params": "none"}, "accept"),
        ({"method": "elicitation/create"}, "accept"),
        ({"method": "sampling/createMessage", "params": {}}, "cancel"),
        ({"method": 7}, "cancel"),
        ({}, "cancel"),
        ("a question", "cancel"),
        (None, "cancel"),
    ],
)
def test_a_question_of_an_interim_result(question: Any, action: str) -> None:
    assert Answers([YES]).to_interim(question)["action"] == action
