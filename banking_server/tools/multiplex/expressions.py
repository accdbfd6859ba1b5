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

Who writes an expression is whoever calls the tool, so its length and its work are bounded: the
language has no loops, but each of `[@,@][] | [@,@][] | …` doubles a list.
"""

import json
import re
from collections.abc import Iterator, Mapping
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

MAX_WORK: Final = 1_000_000
"""What evaluating one expression may cost: some 20 ms."""

_VISIT: Final = 20
"""What one node of an expression costs, or one member of a list or object; a character costs 1."""

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
    for node in _nodes(tree, MAX_DEPTH):
        if node["type"] == "function_expression":
            _check_call(node)
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


def evaluated(tree: Node, results: list[Any]) -> Any:
    """Return what an expression gives of the results; None if it gives nothing.

    Raises `ExpressionError` if it gives no JSON value, or only after too much work.
    """
    try:
        value = _Bounded().visit(tree, results)
    except JMESPathTypeError as error:
        wanted = " or ".join(error.expected_types)
        raise ExpressionError(f"{error.function_name}() takes {wanted} only") from None
    except (JMESPathError, ArithmeticError, ValueError, TypeError, RecursionError):
        raise ExpressionError("it cannot be worked out") from None
    if not is_json(value):
        raise ExpressionError("it gives no JSON value")
    return value


class _TooMuchWork(ExpressionError):
    def __init__(self) -> None:
        super().__init__("it takes too much work")


_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?", re.ASCII)
"""A number as JSON has it."""

_EXACT: Final = Context(prec=800)
"""Enough digits for a sum of the largest double and the smallest."""


class _BoundedFunctions(Functions):
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
        if len(separator) * len(texts) > MAX_WORK:
            raise _TooMuchWork
        return separator.join(texts)


def _decimal(number: int | float) -> Decimal:
    return Decimal(number) if isinstance(number, int) else Decimal(repr(number))


class _Bounded(TreeInterpreter):
    """Evaluates one expression, and charges each of its nodes for what it gives.

    A list is made of others that were charged before, as often as they occur; so nothing large is
    made before somebody notices. The texts of `join` are different.
    """

    def __init__(self) -> None:
        super().__init__(Options(custom_functions=_BoundedFunctions()))
        self._left = MAX_WORK

    def visit(self, node: Any, *args: Any, **kwargs: Any) -> Any:
        self._left -= _VISIT
        value = super().visit(node, *args, **kwargs)
        if node["type"] not in ("identity", "current"):
            self._charge(value)
        return value

    def _charge(self, value: Any) -> None:
        level = [value]
        while level:
            inner: list[Any] = []
            for one in level:
                if isinstance(one, str):
                    self._left -= len(one)
                elif isinstance(one, dict | list):
                    self._left -= _VISIT * len(one)
                    if self._left >= 0:
                        inner.extend(one.values() if isinstance(one, dict) else one)
            if self._left < 0:
                raise _TooMuchWork
            level = inner


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


def _nodes(node: Node, depth: int) -> Iterator[Node]:
    if not depth:
        raise ExpressionError("it is nested too deeply")
    yield node
    for child in _children(node):
        yield from _nodes(child, depth - 1)
