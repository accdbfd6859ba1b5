"""One rule for the titles of arguments, results and forms: `fromAccountId` is "From account".

Hosts show these titles to people: as labels of a form, as headings of a result. The titles that
pydantic makes ("Fromaccountid") are hard to read. `Field(title=…)` sets another title.
"""

import re
from typing import Any, Final

from pydantic import ConfigDict

_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")


def readable(name: str) -> str:
    """Return a Python name or a name on the wire as words. A last word `id` is left out."""
    words = [word.lower() for word in _WORD.findall(name)]
    if len(words) > 1 and words[-1] == "id":
        words.pop()
    return " ".join(words).capitalize()


def _of_field(name: str, _: Any) -> str:
    return readable(name)


def _of_model(model: type[Any]) -> str:
    return readable(model.__name__.removesuffix("Out"))


READABLE: Final = ConfigDict(field_title_generator=_of_field, model_title_generator=_of_model)
"""The configuration of every model whose schema a client sees."""
