"""Arguments that are taken from earlier results, without a model.

`{"jmespath": "[0].structuredContent.accounts[?isLocked].accountId | [0]"}` means the value of this
expression for the list of earlier results. `{"text": "{[1].structuredContent.accountName}-dup"}`
means a text with such values in it. `tool_chaining.expressions` says which part of JMESPath is
supported, and why.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from banking_server.tools.prompts import is_nearly_prompt
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


def steps_named(expression: str, *, needed: bool = False) -> set[int]:
    """Return the numbers of the results that an expression names: 1 for `[1].status`.

    Negative numbers count from the end. Results that a filter finds are not included; with
    `needed`, results in a side of `||` are not included either. Raises `ExpressionError`.
    """

    def named(node: Mapping[str, Any]) -> set[int]:
        kind, children = node["type"], node["children"]
        if kind == "index_expression" and children[0]["type"] in ("identity", "current"):
            return {children[1]["value"]}
        if needed and kind == "or_expression":
            return set()
        if kind not in SIDE_BY_SIDE:
            children = children[:1]  # The other children start from the value of the first.
        return set().union(*map(named, children))

    return named(parsed(expression).parsed)


@contextmanager
def error_prefix(place: str) -> Iterator[None]:
    """Put the place of a value before the message of a `NoValue`."""
    try:
        yield
    except NoValue as problem:
        raise NoValue(f"{place}: {str(problem).rstrip('.')}.") from None


@dataclass(frozen=True)
class Reference:
    """An argument that is taken from earlier results."""

    kind: str | None
    """`jmespath`: the value of the expression. `text`: a text with expressions in `{…}`; `{{` and
    `}}` mean braces. None: it is not a valid reference."""
    written: str

    def expressions(self) -> list[str]:
        """Return the expressions in it. Raises `ExpressionError` if a text has none."""
        return [self.written] if self.kind == "jmespath" else expressions_in(self.written)

    def problem(self, index: int) -> str | None:
        """Return why it cannot work in the step with this index; None if it can."""
        if self.kind is None:
            return (
                'a reference is {"jmespath": "…"} or {"text": "…"}, with a string as its value and '
                "no other member"
            )
        try:
            expressions = self.expressions()
        except ExpressionError as error:
            return str(error)
        if self.kind == "text" and is_nearly_prompt(self.written):
            return "a text is made without a model, so it cannot be a prompt"
        for expression in expressions:
            try:
                named = steps_named(expression)
            except ExpressionError as error:
                return f"{quoted(expression)} cannot be used: {error}"
            if index == 0 or any(not -index <= step < index for step in named):
                return f"{quoted(expression)} must look at earlier results, like [0].status"
        return None

    def value(self, results: Data) -> Any:
        """Return its value from the earlier results. Raises `NoValue`."""
        return (
            results.needed(self.written) if self.kind == "jmespath" else results.text(self.written)
        )


def references(arguments: Mapping[str, Any]) -> dict[str, Reference]:
    """Return the references among a step's arguments, by the arguments' names.

    No tool of the bank has an argument that is an object with a member `jmespath` or `text`. So any
    such object is a reference, or a mistake in one.
    """
    found = {}
    for name, value in arguments.items():
        if isinstance(value, Mapping) and ("jmespath" in value or "text" in value):
            ((kind, written), *more) = value.items()
            is_one = isinstance(written, str) and not more
            found[name] = Reference(kind, written) if is_one else Reference(None, "")
    return found
