"""Which expected calls a client made: by their content, whatever it called in between."""

from collections.abc import Iterator, Mapping, Sequence

from tool_chaining_conformance.client.mock_server import Operation
from tool_chaining_conformance.client.script import ScriptCall
from tool_chaining_conformance.message import within
from tool_chaining_conformance.names import IDENTIFIER
from tool_chaining_conformance.values import identity


def match(expected: Sequence[ScriptCall], made: Sequence[Operation]) -> Mapping[int, Operation]:
    """Return the call that the client made for each expected one, by the number of the latter.

    Equal calls come first: as many as possible in order, then those in another order, as of
    chains that run side by side. What is left is matched with a call of the same tool that has
    other arguments. A call that repeats the one before it in its chain matches nothing.
    """
    again = set(_repeated(made))
    calls = [call for call in made if call.number not in again]
    found = {number + 1: calls[place] for number, place in _in_order(expected, calls)}
    for with_other_arguments in (False, True):
        for number, wanted in enumerate(expected, 1):
            taken = [call.number for call in found.values()]
            free = [call for call in calls if call.number not in taken and number not in found]
            for call in free:
                other = with_other_arguments and call.tool == wanted.tool
                if other or call.is_of(wanted.tool, wanted.arguments):
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


def _in_order(
    expected: Sequence[ScriptCall], made: Sequence[Operation]
) -> Iterator[tuple[int, int]]:
    """Yield the places of the longest sequence of calls that both have."""
    wanted = [identity([call.tool, call.arguments]) for call in expected]
    calls = [identity([call.tool, call.arguments]) for call in made]
    longest = [[0] * (len(calls) + 1) for _ in range(len(wanted) + 1)]
    for one in reversed(range(len(wanted))):
        for two in reversed(range(len(calls))):
            below = longest[one + 1]
            longest[one][two] = (
                below[two + 1] + 1
                if wanted[one] == calls[two]
                else max(longest[one][two + 1], below[two])
            )
    one = two = 0
    while one < len(wanted) and two < len(calls):
        if wanted[one] == calls[two]:
            yield one, two
            one, two = one + 1, two + 1
        elif longest[one][two + 1] >= longest[one + 1][two]:
            two += 1
        else:
            one += 1
