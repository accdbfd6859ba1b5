"""Which expected calls a client made: by their content, whatever it called in between."""

from collections.abc import Iterator, Mapping, Sequence

from tool_chaining_conformance.client.mock_server import Operation
from tool_chaining_conformance.client.script import ScriptCall
from tool_chaining_conformance.message import within
from tool_chaining_conformance.names import IDENTIFIER


def match(expected: Sequence[ScriptCall], made: Sequence[Operation]) -> Mapping[int, Operation]:
    """Return the call that the client made for each expected one, by the number of the latter.

    A call is the next expected one that is equal, or else an earlier one: chains may run side by
    side. What is left is matched with a call of the same tool that has other arguments. A call that
    repeats the one before it in its chain matches nothing.
    """
    again = set(_repeated(made))
    found: dict[int, Operation] = {}
    others: list[Operation] = []
    last = 0
    for call in (call for call in made if call.number not in again):
        free = [number for number in range(1, len(expected) + 1) if number not in found]
        equal = [n for n in free if call.is_of(expected[n - 1].tool, expected[n - 1].arguments)]
        if not equal:
            others.append(call)
            continue
        last = next((number for number in equal if number > last), equal[0])
        found[last] = call
    for call in others:
        for number, wanted in enumerate(expected, 1):
            if number not in found and call.tool == wanted.tool:
                found[number] = call
                break
    return found


def _repeated(made: Sequence[Operation]) -> Iterator[int]:
    """Yield the number of each call that equals the last one with its `chainId` and level."""
    last: dict[str, Operation] = {}
    for call in made:
        shown = within(call.meta, IDENTIFIER)
        if not isinstance(chain := shown.get("chainId"), str):
            continue
        before = last.get(chain)
        at_level = before and within(before.meta, IDENTIFIER).get("level") == shown.get("level")
        if before and at_level and call.is_of(before.tool, before.arguments):
            yield call.number
        last[chain] = call
