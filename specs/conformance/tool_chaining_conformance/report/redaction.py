"""Removes secrets from reports: from the console, files and error messages."""

import json
import re
import sys
from collections.abc import Iterable
from typing import Any, Final

from tool_chaining_conformance.text import cut

REDACTED: Final = "[redacted]"

SHORTEST: Final = 4
"""The shortest secret, in characters, that is also redacted inside other words."""


def _search_for(secret: str) -> re.Pattern[str]:
    """Return a pattern for a secret: plain, or escaped in JSON.

    One shorter than `SHORTEST` is found only as a whole word, since it occurs in other words by
    chance.
    """
    if len(secret) < SHORTEST:
        return re.compile(rf"(?<!\w){re.escape(secret)}(?!\w)" if secret else "(?!)")
    forms = {secret, *(json.dumps(secret, ensure_ascii=ascii)[1:-1] for ascii in (True, False))}
    # Longer forms come first. Otherwise a rest of one would remain and reveal it.
    return re.compile("|".join(map(re.escape, sorted(forms, key=len, reverse=True))))


class Redaction:
    """Replaces the secrets that the user has named: in the scenario, as a token or in a header."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._forms: dict[str, re.Pattern[str]] = {}
        for value in values:
            self.add(value)

    def add(self, value: str) -> None:
        """Redact this value in all later texts."""
        if value and value not in self._forms:
            known = {**self._forms, value: _search_for(value)}
            self._forms = {each: known[each] for each in sorted(known, key=len, reverse=True)}

    def text(self, text: str) -> str:
        """Return `text` without the known secret values."""
        for forms in self._forms.values():
            text = forms.sub(REDACTED, text)
        # Half of a surrogate pair can be sent, but not printed or written to a file.
        return text.encode("utf-8", "backslashreplace").decode("utf-8")

    def json(self, value: Any, *, length: int = sys.maxsize) -> Any:
        """Return a JSON value without secrets.

        Texts are cut after `length`.
        """
        if isinstance(value, dict):
            return {
                cut(self.text(key), length): self.json(item, length=length)
                for key, item in value.items()
            }
        if isinstance(value, list):
            return [self.json(item, length=length) for item in value]
        if isinstance(value, str):
            return cut(self.text(value), length)
        if isinstance(value, int | float) and not isinstance(value, bool):
            # A number can be a secret, too.
            text = self.text(str(value))
            return value if text == str(value) else text
        return value
