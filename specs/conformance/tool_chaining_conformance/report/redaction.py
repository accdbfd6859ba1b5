"""Removes secrets from reports: from the console, files and error messages."""

import base64
import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final
from urllib.parse import quote, quote_plus

from tool_chaining_conformance.text import cut

REDACTED: Final = "[redacted]"

_SECRET_WORDS: Final = frozenset(
    {
        *("apikey", "authorization", "bearer", "code", "cookie", "credential", "otp", "passcode"),
        *("passphrase", "passwd", "password", "pin", "pwd", "secret", "signature", "token"),
    }
)
_KEY_WORDS: Final = frozenset({"access", "api", "private", "secret", "signing", "encryption"})
_WORDS: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_PROTOCOL_MEMBERS: Final = frozenset({"progressToken"})
SHORTEST: Final = 4
"""The shortest secret, in characters, that is also redacted inside other words."""


def _in_base64(text: str) -> str:
    return base64.b64encode(text.encode("utf-8", "surrogatepass")).decode().rstrip("=")


_ENCODINGS: Final[Sequence[Callable[[str], str]]] = (
    lambda text: json.dumps(text)[1:-1],
    lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    lambda text: quote(text, safe="", errors="surrogatepass"),
    lambda text: quote_plus(text, errors="surrogatepass"),
    _in_base64,
    lambda text: _in_base64(text).replace("+", "-").replace("/", "_"),
)


def _search_for(secret: str) -> re.Pattern[str]:
    """Return a pattern for a secret: plain, escaped in JSON, percent-encoded, and in Base64.

    A secret that is encoded twice is not found. One shorter than `SHORTEST` is found only as a
    whole word, since it occurs in other words by chance.
    """
    if len(secret) < SHORTEST:
        return re.compile(rf"(?<!\w){re.escape(secret)}(?!\w)" if secret else "(?!)")
    forms = {secret, *(encode(secret) for encode in _ENCODINGS)}
    # Longer forms come first. Otherwise a part of one would be left and show that it was there.
    return re.compile("|".join(map(re.escape, sorted(forms, key=len, reverse=True))))


def is_secret_name(name: str) -> bool:
    """Return whether a member called `name` probably holds a secret.

    Whole words count, in camelCase, snake_case and kebab-case: `accessToken` and
    `confirmation_code` are names of secrets; `tokenizer`, `monkey` and a plain `key` are not.
    """
    if name in _PROTOCOL_MEMBERS:
        return False
    words = {word.lower() for word in _WORDS.findall(name)}
    words |= {word.removesuffix("s") for word in words}
    if words & _SECRET_WORDS:
        return True
    return "key" in words and bool(words & _KEY_WORDS)


_NAMED: Final = re.compile(
    # A name is matched whole, so that the time is linear to the length of the line.
    r"""(?<![\w-])([\w-]++)(?=["']?\s*[=:]\s*(?:Bearer\s+|Basic\s+)?["']?([^\s"',;&]+))"""
)


def redacted_line(line: str) -> str:
    """Return a line that a program printed, without values after the name of a secret."""
    for found in reversed([*_NAMED.finditer(line)]):
        if is_secret_name(found[1]):
            line = line[: found.start(2)] + REDACTED + line[found.end(2) :]
    return line


def redacted_command(command: Sequence[str]) -> list[str]:
    """Return a command line without the values of options that are named like secrets."""
    redacted: list[str] = []
    secret_follows = False
    for part in command:
        name, equals, _ = part.partition("=")
        if secret_follows and not part.startswith("-"):
            redacted.append(REDACTED)
        elif equals and is_secret_name(name):
            redacted.append(f"{name}={REDACTED}")
        else:
            redacted.append(part)
        secret_follows = part.startswith("-") and not equals and is_secret_name(part)
    return redacted


class Redaction:
    """Replaces secrets: values with the name of a secret, and known secret values.

    The `code` of a JSON-RPC error is not replaced: it is a public number.
    """

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._forms: dict[str, re.Pattern[str]] = {}
        for value in values:
            self.add(value)

    def add(self, value: str) -> None:
        """Redact this value in all later texts."""
        if value and value not in self._forms:
            known = {**self._forms, value: _search_for(value)}
            # A new mapping, since another thread may be reading the old one.
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
            is_error = isinstance(value.get("code"), int) and "message" in value
            return {
                cut(self.text(key), length): REDACTED
                if is_secret_name(key) and _may_be_secret(item) and not (is_error and key == "code")
                else self.json(item, length=length)
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


def _may_be_secret(value: Any) -> bool:
    """Return whether a value can be a secret: a text or a number, but not a schema of a token."""
    return isinstance(value, str | int | float) and not isinstance(value, bool)
