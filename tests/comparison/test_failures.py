"""Why a run did not end as asked, from its transcript, by rules."""

from typing import Any

import pytest

from banking_server.comparison.distractor import DISTRACTOR
from banking_server.comparison.failures import Failure, why

IDS = {"acc_savings_001"}


def calling(tool: str, server: str = "bank", by: str = "model", **given: Any) -> dict[str, Any]:
    tool_of = {"server": server, "name": tool}
    return {"entry": "Calling", "by": by, "tool": tool_of, "arguments": given}


def called(*, is_error: bool = False, **structured: Any) -> dict[str, Any]:
    result = {"isError": is_error, "structuredContent": structured}
    return {"entry": "Called", "by": "model", "step": {"result": result}}


def replied(text: str) -> dict[str, Any]:
    return {"entry": "ModelReplied", "purpose": "turn", "text": text}


CORRECTED = {"entry": "Corrected", "problem": "amount must be a number"}
EMPTY = {"entry": "Corrected", "problem": "the reply was empty"}
AGAIN = {"entry": "Corrected", "problem": "x was called with these arguments before, and failed"}
NO_TOOL = {"entry": "Corrected", "problem": "there is no tool 'x'; the tools are: y"}
LOOKED = calling("get_account_balance", accountId="acc_savings_001")
MADE_UP = calling("get_account_balance", accountId="acc_savings_999")


def given(transcript: list[dict[str, Any]], **other: bool) -> Failure:
    told = {"otherwise": False, "refused": False, "stopped": True, **other}
    return why(transcript, ids=IDS, **told)


@pytest.mark.parametrize(
    ("transcript", "failure"),
    [
        ([NO_TOOL, MADE_UP], Failure.WRONG_TOOL),
        ([calling("contact_support", DISTRACTOR)], Failure.WRONG_TOOL),
        ([{**calling("x", DISTRACTOR), "entry": "Declined"}], Failure.WRONG_TOOL),
        ([MADE_UP, MADE_UP], Failure.INVENTED_ID),
        ([{"entry": "Inferred", "reply": ' "acc_x".'}], Failure.INVENTED_ID),
        ([replied("a"), replied("a"), CORRECTED], Failure.REPEATED),
        ([LOOKED, called(), LOOKED], Failure.REPEATED),
        ([replied(""), replied(""), CORRECTED], Failure.UNFIT),
        ([replied("a"), AGAIN], Failure.REPEATED),
        ([replied(""), EMPTY, replied(""), EMPTY], Failure.STOPPED_EARLY),
        ([{**replied("a"), "purpose": "probe"}, replied("a"), CORRECTED], Failure.UNFIT),
        ([LOOKED, called(is_error=True)], Failure.UNFIT),
        ([called(results=[{"status": "done"}, {"status": "failed"}])], Failure.UNFIT),
        ([{"entry": "Inferred", "reply": "25"}, called()], Failure.STOPPED_EARLY),
        ([calling("x", by="directive", accountId="acc_y")], Failure.STOPPED_EARLY),
        ([replied("Done."), LOOKED, called()], Failure.STOPPED_EARLY),
        ([], Failure.STOPPED_EARLY),
    ],
)
def test_the_first_class_that_fits(transcript: list[dict[str, Any]], failure: Failure) -> None:
    assert given(transcript) is failure


def test_what_the_transcript_alone_does_not_say() -> None:
    assert given([LOOKED, EMPTY], stopped=False) is Failure.NEVER_STOPPED
    assert given([CORRECTED], refused=True, stopped=False) is Failure.DECLINED
    assert given([LOOKED], otherwise=True, refused=True) is Failure.SOMETHING_ELSE
    assert given([MADE_UP], otherwise=True, refused=True) is Failure.INVENTED_ID
