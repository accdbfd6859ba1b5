"""Servers that answer by chance, by a counter or by the time: nobody is blamed for the difference
but the check of it."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from banking_server.conformance.target.era import Era

from .small_server import SmallServer
from .support import examine_server, statuses

SAME_TOOL = "tool-chaining-server-same-input-same-directive"

Change = Callable[[Any, Any, int], tuple[Any, Any]]


def other_tool(result: Any, directive: Any, number: int) -> tuple[Any, Any]:
    return result, {**directive, "tool": "notify_team"}


def no_tool(result: Any, directive: Any, number: int) -> tuple[Any, Any]:
    return result, None


def other_arguments(result: Any, directive: Any, number: int) -> tuple[Any, Any]:
    return result, {**directive, "arguments": {"order": f"record {number}"}}


def other_text(result: Any, directive: Any, number: int) -> tuple[Any, Any]:
    text = {"type": "text", "text": f"It is {number}."}
    return {**result, "content": [text]}, directive


def fails(result: Any, directive: Any, number: int) -> tuple[Any, Any]:
    return {**result, "isError": True}, None


def every(period: int) -> Callable[[int], Iterator[bool]]:
    def numbers(seed: int) -> Iterator[bool]:
        number = seed
        while True:
            number += 1
            yield number % period == 0

    return numbers


def one_in(count: int) -> Callable[[int], Iterator[bool]]:
    def chances(seed: int) -> Iterator[bool]:
        chance = random.Random(seed)
        while True:
            yield chance.randrange(count) == 0

    return chances


OFTEN = {
    "always": every(1),
    "every-second": every(2),
    "every-third": every(3),
    "one-in-two": one_in(2),
    "one-in-five": one_in(5),
}


@pytest.mark.parametrize("often", OFTEN)
@pytest.mark.parametrize("change", [other_tool, no_tool, other_arguments, other_text, fails])
def test_the_blame_is_on_the_right_check_or_on_none(
    change: Change, often: str, nightly: bool
) -> None:
    blamed: set[str] = set()
    for seed in range(2 if nightly else 1):
        turns = OFTEN[often](seed)

        class ByChance(SmallServer):
            def place_order(self, arguments: Any, request: Any, turns: Any = turns) -> Any:
                result, directive = super().place_order(arguments, request)
                if directive is not None and next(turns):
                    return change(result, directive, self.calls)
                return result, directive

        judged = statuses(examine_server(ByChance, [Era.MODERN]).judgements)
        blamed |= {check for check, status in judged.items() if status in ("FAILURE", "WARNING")}
    may = {SAME_TOOL} if change in (other_tool, no_tool) else set()
    assert blamed <= may
    if change is other_tool and often in ("every-second", "every-third"):
        assert blamed == may


@pytest.mark.parametrize("era", Era)
def test_what_differs_from_session_to_session_is_no_fault(era: Era) -> None:
    """On 2025-11-25 each declaration takes a session of its own."""

    class ForEachSession(SmallServer):
        def place_order(self, arguments: Any, request: Any) -> Any:
            result, directive = super().place_order(arguments, request)
            if directive is not None:
                directive["arguments"]["order"] += f" of {id(request.capabilities)}"
            return result, directive

    judged = statuses(examine_server(ForEachSession, [era]).judgements)
    assert {
        check for check, status in judged.items() if status not in ("SUCCESS", "SKIPPED")
    } == set()
