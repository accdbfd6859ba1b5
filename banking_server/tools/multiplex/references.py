"""Arguments that are taken from earlier results, without a model.

`{"jmespath": "[0].structuredContent.accounts[?isLocked].accountId | [0]"}` means the value of this
expression for the list of earlier results. `{"text": "{[1].structuredContent.accountName}-dup"}`
means a text with such values in it; `{{` and `}}` mean braces. `tool_chaining.expressions` says
which part of JMESPath is supported, and why. Any other argument is a plain value.
"""

from typing import Any, Final

from tool_chaining.expressions import Data, ExpressionError, expressions_in, parsed, quoted

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


def check(expression: str) -> None:
    """Raise `ExpressionError` if an expression cannot be used on a list of results."""
    try:
        parsed(expression, ())
    except ExpressionError as error:
        raise ExpressionError(f"{quoted(expression)} cannot be used: {error}") from None


def value_of(argument: Any, results: Data) -> Any:
    """Return the value of an argument: a plain one is its own. Raises `NoValue`."""
    match argument:
        case {"jmespath": str(written), **more} if not more:
            return results.needed(written)
        case {"text": str(written), **more} if not more:
            return results.text(written)
    return argument
