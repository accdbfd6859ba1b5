"""Why a run did not end as asked, from its transcript, by rules.

The first class that fits is taken, so that a run has one: what went wrong first tends to stand
first. What the endpoint did is not among them: such a run is no failure of its way.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import StrEnum
from typing import Any, Final

from pydantic import BaseModel

from banking_server.agent import OfferedTool
from banking_server.chaining.values import canonical
from banking_server.comparison.distractor import DISTRACTOR

_EMPTY: Final = "the reply was empty"
_REPEATED: Final = "was called with these arguments before"
"""Of the agent's own words for what it corrected."""

_ID: Final = re.compile(r"(?:acc|tr|ho|ap)_\w+", re.ASCII)


class Failure(StrEnum):
    """What went wrong."""

    WRONG_TOOL = "wrong tool"
    """It asked for a tool that there is not, or for the distractor."""
    INVENTED_ID = "invented id"
    """It gave an id that nothing at the bank has."""
    SOMETHING_ELSE = "did something else"
    """It did something, or answered a question by a figure, that was not what was asked for."""
    DECLINED = "declined by the person"
    """It asked for something that the customer did not want."""
    REPEATED = "repeated a call"
    """It asked twice for the same call."""
    UNFIT = "unfit arguments"
    """It asked for a call that could not be made, or that the bank refused."""
    NEVER_STOPPED = "never stopped"
    """It reached a limit, be it by saying nothing."""
    STOPPED_EARLY = "stopped early"
    """None of these: it said that it was done."""


def why(
    transcript: Sequence[dict[str, Any]],
    *,
    ids: Collection[str],
    otherwise: bool,
    refused: bool,
    stopped: bool,
) -> Failure:
    """Return the class of a run that did not end as asked.

    `transcript` is as `entries` makes it; `ids` are all that the bank has at the end. `otherwise`:
    whether something else was done, as the judge has it; `refused`: whether the customer did not
    agree to something; `stopped`: whether no limit ended the run.
    """
    asked = [entry for entry in transcript if _asks(entry)]
    problems = [entry["problem"] for entry in transcript if entry["entry"] == "Corrected"]
    unknown = any("there is no tool" in problem for problem in problems)
    if unknown or any(entry["tool"]["server"] == DISTRACTOR for entry in asked):
        return Failure.WRONG_TOOL
    if any(named not in ids for entry in transcript for named in _named(entry)):
        return Failure.INVENTED_ID
    if otherwise:
        return Failure.SOMETHING_ELSE
    if refused:
        return Failure.DECLINED
    calls = [canonical([entry["tool"]["name"], entry["arguments"]]) for entry in asked]
    turns = [entry for entry in transcript if entry.get("purpose") == "turn"]
    texts = [turn["text"] for turn in turns if turn["text"]]
    if _has_equal(calls) or _has_equal(texts) or any(_REPEATED in one for one in problems):
        return Failure.REPEATED
    if any(problem != _EMPTY for problem in problems) or any(
        _failed(entry) for entry in transcript
    ):
        return Failure.UNFIT
    return Failure.STOPPED_EARLY if stopped else Failure.NEVER_STOPPED


def entries(transcript: Iterable[Any]) -> list[dict[str, Any]]:
    """Return the entries of a transcript as JSON, each with its kind as the member `entry`."""
    return [{"entry": type(entry).__name__, **in_json(entry)} for entry in transcript]


def in_json(value: Any) -> Any:
    """Return anything that stands in a transcript as JSON."""
    if isinstance(value, OfferedTool):
        return {"server": value.server, "name": value.tool.name}
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)
    if is_dataclass(value):
        return {field.name: in_json(getattr(value, field.name)) for field in fields(value)}
    return value


def _asks(entry: Mapping[str, Any]) -> bool:
    """Say whether an entry is a call that the model asked for and that could be made."""
    kind, by = entry["entry"], entry.get("by")
    return kind == "Declined" or (kind == "Calling" and by == "model")


def _named(entry: Mapping[str, Any]) -> list[str]:
    """Return the ids that the model gave: as arguments of a call, or as an inferred argument."""
    if entry["entry"] == "Inferred":
        return [reply for reply in [entry["reply"].strip(" \n\"'`.")] if _ID.fullmatch(reply)]
    if not _asks(entry):
        return []
    given = entry["arguments"].items()
    return [value for name, value in given if name.endswith("Id") and isinstance(value, str)]


def _failed(entry: Mapping[str, Any]) -> bool:
    """Say whether an entry is a result that says that its call failed, or a step of it."""
    if entry["entry"] != "Called":
        return False
    result = entry["step"]["result"]
    steps = result.get("structuredContent", {}).get("results", ())
    return bool(result.get("isError") or any(step["status"] == "failed" for step in steps))


def _has_equal(values: Sequence[str]) -> bool:
    return len(set(values)) < len(values)
