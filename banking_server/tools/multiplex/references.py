"""Arguments that are taken from earlier results, without a model.

`{"jmespath": "[0].structuredContent.accounts[?isLocked].accountId | [0]"}` means the value of this
expression for the list of earlier results. `{"text": "{[1].structuredContent.accountName}-dup"}`
means a text with such values in it; `{{` and `}}` mean braces. `tool_chaining.expressions` says
which part of JMESPath is supported, and why. Any other argument is a plain value.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from tool_chaining.expressions import (
    SIDE_BY_SIDE,
    Data,
    ExpressionError,
    NoValue,
    expressions_in,
    parsed,
    quoted,
)

MAX_WORK: Final = 5_000_000
"""The most work that the expressions of one call may take, as `Data` counts it."""


def earlier_results(results: list[dict[str, Any]]) -> Data:
    """Return the results so far, for the expressions of one call."""
    too_much = "the expressions of this call take too much work. Make several calls"
    return Data(results, MAX_WORK, too_much)


def expressions(argument: Any) -> list[str]:
    """Return the expressions in an argument. Raises `ExpressionError` if a text has none."""
    match argument:
        case {"jmespath": str(written), **more} if not more:
            return [written]
        case {"text": str(written), **more} if not more:
            return expressions_in(written)
    return []


def check(expression: str, index: int) -> None:
    """Raise `ExpressionError` if the step with this index cannot use an expression.

    It starts from the list of earlier results, and may name none that comes later.
    """

    def named(node: Mapping[str, Any]) -> set[int]:
        """Return the numbers of the results that a tree names: 1 for `[1].status`."""
        kind, children = node["type"], node["children"]
        if kind == "index_expression" and children[0]["type"] in ("identity", "current"):
            return {children[1]["value"]}
        if kind not in SIDE_BY_SIDE:
            children = children[:1]  # The other children start from the value of the first.
        return set().union(*map(named, children))

    try:
        results = named(parsed(expression, ()))
    except ExpressionError as error:
        raise ExpressionError(f"{quoted(expression)} cannot be used: {error}") from None
    if not index or any(not -index <= number < index for number in results):
        raise ExpressionError(f"{quoted(expression)} must look at earlier results, like [0].status")


@contextmanager
def error_prefix(place: str) -> Iterator[None]:
    """Put the place of a value before the message of a `NoValue`."""
    try:
        yield
    except NoValue as problem:
        raise NoValue(f"{place}: {problem}") from None


def value_of(argument: Any, results: Data) -> Any:
    """Return the value of an argument: a plain one is its own. Raises `NoValue`."""
    match argument:
        case {"jmespath": str(written), **more} if not more:
            return results.needed(written)
        case {"text": str(written), **more} if not more:
            return results.text(written)
    return argument
