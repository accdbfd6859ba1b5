"""JMESPath over the results so far: `[0].structuredContent.accounts[?isLocked].accountId | [0]`.

JMESPath, and no language of our own, because it is widely known (the AWS command line and Azure's
speak it), has a written grammar with a compliance suite, and comes as one small package in pure
Python, which answers with JSON and reads nothing but what it is given. It filters, selects, counts
and sums. JSONata would reckon and join texts too, but it is a programming language, with functions
that call themselves: what a caller writes in it can be bounded by a clock only, and its ports to
Python are written by few and used by few. What of it was missed is a text with places
(`references.Text`).

Numbers are reckoned in decimal, as they are written: 0.1 and 0.2 make 0.3, in an argument and in a
condition. The package's `to_number` takes whatever Python takes for a number (`1_000`, `nan`); here
it takes what JSON does, as JMESPath says.

Who writes an expression is whoever calls the tool. So its length is bounded, and so is the work of
all expressions of one call together (`Work`): the language has no loops, but each of
`[@,@][] | [@,@][] | …` doubles a list.
"""

import json
import re
import sys
from collections.abc import Mapping
from decimal import Context, Decimal, localcontext
from typing import Any, Final

import jmespath
from jmespath.exceptions import (
    EmptyExpressionError,
    IncompleteExpressionError,
    JMESPathError,
    JMESPathTypeError,
    ParseError,
)
from jmespath.functions import Functions, signature
from jmespath.visitor import Options, TreeInterpreter

from banking_server.bank.rules import excerpt
from banking_server.chaining.values import is_json

MAX_EXPRESSION: Final = 500
"""Characters of one expression."""

MAX_DEPTH: Final = 100
"""How deep an expression may be nested; each `|` is a level too."""

MAX_WORK: Final = 500_000
"""What evaluating all expressions of one call may cost together: some 0.1 s."""

_VISIT: Final = 20
"""What one visit of a node costs, or one member of a list or object; a character costs 1."""

Node = Mapping[str, Any]
"""A node of a parsed expression, as `jmespath` has it."""


class ExpressionError(Exception):
    """An expression cannot be read, or gives no value; the message says why, in half a sentence."""


def parsed(expression: str) -> Node:
    """Return the expression as a tree. Raises `ExpressionError` if it is none that can work."""
    if len(expression) > MAX_EXPRESSION:
        raise ExpressionError(
            f"it has {len(expression)} characters, and at most {MAX_EXPRESSION} are allowed"
        )
    try:
        tree: Node = jmespath.compile(expression).parsed
    except EmptyExpressionError:
        raise ExpressionError("it is empty") from None
    except ParseError as error:
        ends = isinstance(error, IncompleteExpressionError) or error.token_type in _END
        where = "it ends too early" if ends else f"see its character {error.lex_position + 1}"
        raise ExpressionError(where) from None
    except (ValueError, RecursionError):
        raise ExpressionError("it cannot be read") from None
    _check(tree, MAX_DEPTH)
    return tree


def steps_named(tree: Node, *, needed: bool = False) -> set[int]:
    """Return the numbers of the results that an expression names: 1 of `[1].status`.

    They count from the end where they are below zero. What a filter finds is not among them; with
    `needed`, neither is what only one side of `||` names.
    """
    children = _children(tree)
    kind = tree["type"]
    if kind == "index_expression" and children[0]["type"] == "identity":
        return {children[1]["value"]} if children[1]["type"] == "index" else set()
    if kind not in _SIDE_BY_SIDE:
        children = children[:1]  # The others start from what the first one gives.
    named = [steps_named(child, needed=needed) for child in children]
    if needed and kind == "or_expression":
        return set.intersection(*named)
    return set().union(*named)


_SIDE_BY_SIDE: Final = frozenset(
    {"function_expression", "comparator", "or_expression", "and_expression", "not_expression"}
    | {"multi_select_list", "multi_select_dict", "key_val_pair"}
)
"""Nodes whose children all look at the same value."""


class Work:
    """What is left of the work that the expressions of one call may take, all of them together."""

    def __init__(self) -> None:
        self.left = MAX_WORK

    def charge(self, units: int) -> None:
        """Take from what is left. Raises `ExpressionError` if that is not enough."""
        self.left -= units
        if self.left < 0:
            raise ExpressionError(
                "with it, the expressions of this call take too much work. Let them look at fewer "
                "values, or make several calls"
            )

    def charge_for(self, *values: Any, depth: int = sys.maxsize) -> None:
        """Take what it costs to look at what values are made of, `depth` levels down.

        What is there more than once is charged as often. No more is looked at than is charged.
        """
        level: list[Any] = list(values)
        while level and depth:
            depth -= 1
            inner: list[Any] = []
            for one in level:
                if isinstance(one, dict):
                    self.charge(_VISIT * len(one) + sum(map(len, one)))
                    inner.extend(one.values())
                elif isinstance(one, list):
                    self.charge(_VISIT * len(one))
                    inner.extend(one)
                elif isinstance(one, str):
                    self.charge(len(one))
                elif isinstance(one, int):
                    self.charge(one.bit_length())
            level = inner


def evaluated(tree: Node, results: list[Any], work: Work) -> Any:
    """Return what an expression gives of the results; None if it gives nothing.

    Raises `ExpressionError` if it gives no JSON value, or if there is not enough `work` left.
    """
    try:
        value = _Charging(work).visit(tree, results)
    except JMESPathTypeError as error:
        wanted = " or ".join(error.expected_types)
        raise ExpressionError(f"{error.function_name}() takes {wanted} only") from None
    except (JMESPathError, ArithmeticError, ValueError, TypeError, RecursionError):
        raise ExpressionError("it cannot be worked out") from None
    work.charge_for(value)
    if not is_json(value):
        raise ExpressionError("it gives no JSON value")
    return value


_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?", re.ASCII)
"""A number as JSON has it."""

_EXACT: Final = Context(prec=50)
"""Enough digits for a sum of amounts in any currency."""


class _Functions(Functions):
    """Those of the package, with numbers reckoned in decimal."""

    def __init__(self, work: Work) -> None:
        self._work = work

    @signature({"types": ["array-number"]})
    def _func_sum(self, numbers: list[int | float]) -> int | float:
        """Add numbers up as they are written in decimal."""
        if all(isinstance(number, int) for number in numbers):
            return sum(numbers)
        with localcontext(_EXACT):
            return float(sum(map(_decimal, numbers)))

    @signature({"types": ["array-number"]})
    def _func_avg(self, numbers: list[int | float]) -> float | None:
        """Return the mean of numbers as they are written in decimal."""
        if not numbers:
            return None
        with localcontext(_EXACT):
            return float(sum(map(_decimal, numbers)) / len(numbers))

    @signature({"types": []})
    def _func_to_number(self, value: Any) -> Any:
        """Return a number as it is, a text as the number that it writes, else nothing."""
        if isinstance(value, str):
            return json.loads(value) if _NUMBER.fullmatch(value) else None
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None

    @signature({"types": ["string"]}, {"types": ["array-string"]})
    def _func_join(self, separator: str, texts: list[str]) -> str:
        """Join texts. The one function whose result can be much longer than what it is given."""
        self._work.charge(len(separator) * len(texts))
        return separator.join(texts)


def _decimal(number: int | float) -> Decimal:
    return Decimal(number) if isinstance(number, int) else Decimal(repr(number))


class _Charging(TreeInterpreter):
    """Evaluates one expression, and charges for its work before it is done.

    Each visit of a node is charged: to take a value out of another, or to hand it on, is no more.
    What looks at whole values is charged for their size too.
    """

    def __init__(self, work: Work) -> None:
        super().__init__(Options(custom_functions=_Functions(work)))
        self._work = work

    def visit(self, node: Any, *args: Any, **kwargs: Any) -> Any:
        self._work.charge(_VISIT)
        kind = node["type"]
        if kind in _LOOKS_AT:
            given = [self.visit(child, *args, **kwargs) for child in node["children"]]
            self._work.charge_for(*given, depth=_LOOKS_AT[kind])
            # What they are has been worked out.
            node = {**node, "children": [{"type": "literal", "value": value} for value in given]}
        return super().visit(node, *args, **kwargs)


_LOOKS_AT: Final = {"function_expression": sys.maxsize, "comparator": sys.maxsize, "flatten": 2}
"""Nodes that look at all of what they are given, and how many levels down."""

_END: Final = frozenset({"EOF"})
"""What the parser calls the end of an expression."""

_FUNCTIONS: Final = Functions.FUNCTION_TABLE


def _check_call(node: Node) -> None:
    """Raise `ExpressionError` if there is no such function, or not for so many arguments."""
    name, given = node["value"], len(node["children"])
    if name not in _FUNCTIONS:
        raise ExpressionError(f"there is no function {excerpt(json.dumps(name))}")
    wanted = _FUNCTIONS[name]["signature"]
    variadic = bool(wanted) and wanted[-1].get("variadic")
    if given < len(wanted) or (given > len(wanted) and not variadic):
        raise ExpressionError(f"{name}() takes {len(wanted)} arguments")


def _children(node: Node) -> list[Node]:
    """Return the nodes below a node; the children of a slice are numbers."""
    return [child for child in node["children"] if isinstance(child, dict)]


def _check(node: Node, depth: int) -> None:
    """Raise `ExpressionError` if a tree is too deep, or calls a function that there is not."""
    if not depth:
        raise ExpressionError("it is nested too deeply")
    if node["type"] == "function_expression":
        _check_call(node)
    for child in _children(node):
        _check(child, depth - 1)
