"""Values that are taken from earlier results, with no model.

At any depth of a step's arguments, `{"jmespath": "[0].structuredContent.accounts[1].accountId"}`
stands for what this expression gives of the list of earlier results (`expressions`), and
`{"text": "{[1].structuredContent.accountName}-dup"}` for a text with such values in it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from banking_server.bank.rules import excerpt
from banking_server.chaining import values
from banking_server.tools.multiplex.expressions import (
    ExpressionError,
    Work,
    evaluated,
    parsed,
    steps_named,
)
from banking_server.tools.multiplex.places import ArgumentNotFound, Path, children
from banking_server.tools.prompts import is_nearly_prompt

MAX_TEXT: Final = 2_000
"""Characters of one text with places."""


@dataclass(frozen=True)
class Expression:
    """A JMESPath expression."""

    text: str
    looks: int = 1
    """How many values are looked up for it."""

    def problem(self, index: int) -> str | None:
        """Say why it cannot work in the step of this index; None if it can."""
        try:
            named = steps_named(parsed(self.text))
        except ExpressionError as error:
            return f"{_shown(self.text)} is no JMESPath expression: {error}"
        if index == 0 or any(not -index <= step < index for step in named):
            return f"{_shown(self.text)} must look at earlier results, like [0].structuredContent"
        return None

    def needed(self, index: int) -> set[int]:
        """Return the numbers of the results without which the step of this index has no value."""
        return {step % index for step in steps_named(parsed(self.text), needed=True)}

    def value(self, results: Sequence[Any], work: Work) -> Any:
        """Return what it gives of the earlier results.

        Raises `ArgumentNotFound` if it gives nothing: null is nothing in this language.
        """
        found, exists = self.look(results, work)
        if not exists:
            raise ArgumentNotFound(f"{_shown(self.text)} gives nothing")
        return found

    def look(self, results: Sequence[Any], work: Work) -> tuple[Any, bool]:
        """Return what it gives, and whether that is anything.

        Raises `ArgumentNotFound` if it cannot be worked out.
        """
        try:
            found = evaluated(parsed(self.text), list(results), work)
        except ExpressionError as error:
            raise ArgumentNotFound(f"{_shown(self.text)} gives nothing: {error}") from None
        return found, found is not None


_PIECE: Final = re.compile(
    r"""(?P<brace>\{\{|\}\})
      | \{(?P<place>(?:[^{}'"`]|'(?:\\.|[^'\\])*+'|"(?:\\.|[^"\\])*+"|`(?:\\.|[^`\\])*+`)*+)\}
      | (?P<plain>[^{}]++)""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class Text:
    """A text with `{…}` places, in each a JMESPath expression; `{{` and `}}` stand for braces."""

    text: str

    @property
    def looks(self) -> int:
        """How many values are looked up for it."""
        return len(self._places())

    def problem(self, index: int) -> str | None:
        """Say why it cannot work in the step of this index; None if it can.

        Nothing reads a text that is too long.
        """
        if len(self.text) > MAX_TEXT:
            return f"{_shown(self.text)} has more than {MAX_TEXT} characters"
        if self._pieces() is None:
            return (
                f"{_shown(self.text)} has a brace too many: a place is "
                '"{[0].structuredContent.…}", without an object like {a: b} in it, and a brace of '
                "the text is written twice"
            )
        places = self._places()
        if not places:
            return f'{_shown(self.text)} has no place like "{{[0].structuredContent.…}}" in it'
        if is_nearly_prompt(self.text):
            return f"{_shown(self.text)} is made without a model, and so cannot be a prompt"
        return next(filter(None, (place.problem(index) for place in places)), None)

    def needed(self, index: int) -> set[int]:
        """Return the numbers of the results without which the step of this index has no value."""
        return set().union(*(place.needed(index) for place in self._places()))

    def value(self, results: Sequence[Any], work: Work) -> str:
        """Return the text with what its places give of the earlier results.

        A number is written as JSON has it, exactly. Raises `ArgumentNotFound` if a place gives
        nothing, or what is no text, number or truth value.
        """
        return "".join(
            piece if isinstance(piece, str) else _in_text(piece, results, work)
            for piece in self._pieces() or ()
        )

    def _places(self) -> list[Expression]:
        return [piece for piece in self._pieces() or () if isinstance(piece, Expression)]

    def _pieces(self) -> list[str | Expression] | None:
        """Return what it is made of; None if its braces cannot be read.

        It is read once from left to right, and no further than to the first mistake: a search
        would begin again behind each brace, and take the square of the time.
        """
        pieces: list[str | Expression] = []
        at = 0
        while at < len(self.text):
            piece = _PIECE.match(self.text, at)
            if piece is None:
                return None
            place = piece["place"]
            if place is not None:
                pieces.append(Expression(place))
            else:
                pieces.append(piece["plain"] or piece["brace"][0])
            at = piece.end()
        return pieces


def _in_text(place: Expression, results: Sequence[Any], work: Work) -> str:
    value = place.value(results, work)
    if isinstance(value, dict | list):
        kind = "a list" if isinstance(value, list) else "an object"
        raise ArgumentNotFound(f"{_shown(place.text)} gives {kind}, which is no part of a text")
    return value if isinstance(value, str) else values.canonical(value)


Reference = Expression | Text

_SPELLINGS: Final[dict[str, type[Expression] | type[Text]]] = {
    "jmespath": Expression,
    "text": Text,
}


def references(value: Any, path: Path = ()) -> Iterator[tuple[Path, Reference]]:
    """Yield the place of every reference in a step's arguments, and the reference."""
    reference = _reference(value)
    if reference is not None:
        yield path, reference
    else:
        for key, item in children(value):
            yield from references(item, (*path, key))


def mistyped(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the place of everything that names `jmespath`, or only `text`, and is no reference.

    No tool here takes such an object, so it is a mistake, and nothing to be passed on.
    """
    if _reference(value) is None:
        if isinstance(value, Mapping) and ("jmespath" in value or value.keys() == {"text"}):
            yield path
        for key, item in children(value):
            yield from mistyped(item, (*path, key))


def is_reference(value: Any) -> bool:
    """Return whether a value in a step's arguments stands for one of an earlier result."""
    return _reference(value) is not None


def _reference(value: Any) -> Reference | None:
    """Return what an object with nothing but a reference refers to."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return None
    ((spelling, text),) = value.items()
    kind = _SPELLINGS.get(spelling)
    return None if kind is None or not isinstance(text, str) else kind(text)


def _shown(text: str) -> str:
    return repr(excerpt(text, 200))
