"""Secrets never reach a report: neither the console, nor a file, nor an error message."""

import json
import math
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Sequence
from typing import Any, Final
from urllib.parse import quote, quote_plus

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
_SHORTEST_LITERAL: Final = 4
_SHORTEST_IN_BASE64: Final = 6
"""Characters; a shorter part of a text in Base64 stands in others by chance."""
_JSON_LEVELS: Final = 4
"""Texts of JSON within one another in which a secret is looked for."""
_MORE_LEVELS: Final = 2
"""By which a report may quote what was found."""


def spellings(secret: str, levels: int = _JSON_LEVELS) -> frozenset[str]:
    """Return the texts in which a secret can stand: as it is, in JSON, in a URL, in Base64.

    Empty for a very short secret: it stands everywhere by chance.
    """
    if len(secret) < _SHORTEST_LITERAL:
        return frozenset()
    raw = secret.encode("utf-8", "surrogatepass")
    found = {secret, quote(raw), quote(raw, safe=""), quote_plus(raw)}
    found |= _in_base64(raw)
    for kept in range(levels + 1):
        # Whoever quotes what others wrote may write in ASCII what they did not.
        escaped = secret
        for level in range(levels):
            escaped = json.dumps(escaped, ensure_ascii=level >= kept)[1:-1]
            found.add(escaped)
    return frozenset(found)


def _in_base64(raw: bytes) -> set[str]:
    """Return what of `raw` is the same in Base64 whatever stands before and after it.

    A byte begins at one of three places within a group of four characters.
    """
    found = {coded(raw).decode().rstrip("=") for coded in (b64encode, urlsafe_b64encode)}
    for before in range(3):
        # Only the characters of which every bit is the secret's own.
        first, last = -(-before * 8 // 6), (before + len(raw)) * 8 // 6
        for coded in (b64encode, urlsafe_b64encode):
            text = coded(bytes(before) + raw).decode()[first:last]
            if len(text) >= _SHORTEST_IN_BASE64:
                found.add(text)
    return found


def is_secret_name(name: str) -> bool:
    """Say whether a member called `name` probably holds a secret.

    Whole words count, in camelCase, snake_case and kebab-case alike: `accessToken` and
    `confirmation_code` do; `tokenizer`, `monkey` and a plain `key` do not.
    """
    if name in _PROTOCOL_MEMBERS:
        return False
    words = {word.lower() for word in _WORDS.findall(name)}
    words |= {word.removesuffix("s") for word in words}
    if words & _SECRET_WORDS:
        return True
    return "key" in words and bool(words & _KEY_WORDS)


_NAMED: Final = re.compile(
    # A name is taken whole, so that a long line without an end takes no longer than its length.
    r"""(?<![\w-])([\w-]++)(?=["']?\s*[=:]\s*(?:Bearer\s+|Basic\s+)?["']?([^\s"',;&]+))"""
)


def shown_line(line: str) -> str:
    """Return a line that a program printed without what stands behind the name of a secret."""
    for found in reversed([*_NAMED.finditer(line)]):
        if is_secret_name(found[1]):
            line = line[: found.start(2)] + REDACTED + line[found.end(2) :]
    return line


def shown_command(command: Sequence[str]) -> list[str]:
    """Return a command line without the values of options that are named like secrets."""
    shown: list[str] = []
    secret_follows = False
    for part in command:
        name, equals, _ = part.partition("=")
        if secret_follows and not part.startswith("-"):
            shown.append(REDACTED)
        elif equals and is_secret_name(name):
            shown.append(f"{name}={REDACTED}")
        else:
            shown.append(part)
        secret_follows = part.startswith("-") and not equals and is_secret_name(part)
    return shown


class Redaction:
    """Replaces secrets: values whose name is that of a secret, and values known to be secret.

    The `code` of a JSON-RPC error stays: it is a number with a public meaning.
    """

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values: frozenset[str] = frozenset()
        for value in values:
            self.add(value)

    def add(self, value: str) -> None:
        """Redact this very value wherever it appears from now on.

        Very short values are left to their names: replacing every "1" would hide the report.
        """
        # A new set, since another thread may be walking through this one.
        self._values = self._values | spellings(value, _JSON_LEVELS + _MORE_LEVELS)

    def text(self, text: str) -> str:
        """Return `text` without the known secret values."""
        for value in sorted(self._values, key=len, reverse=True):
            text = text.replace(value, REDACTED)
        # Half of a pair of surrogates can be sent, but neither printed nor written.
        return text.encode("utf-8", "backslashreplace").decode("utf-8")

    def json(self, value: Any) -> Any:
        """Return a JSON value without secrets."""
        if isinstance(value, dict):
            is_error = isinstance(value.get("code"), int) and "message" in value
            return {
                self.text(key): REDACTED
                if is_secret_name(key) and _may_be_secret(item) and not (is_error and key == "code")
                else self.json(item)
                for key, item in value.items()
            }
        if isinstance(value, list):
            return [self.json(item) for item in value]
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            # A number can be a secret, too; and what no double holds is no JSON.
            text = self.text(str(value))
            return value if text == str(value) and _is_double(value) else text
        return value


def _is_double(number: int | float) -> bool:
    """Whether a double holds a number, so that other readers of the report can read it."""
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


def _may_be_secret(value: Any) -> bool:
    """Whether a value may be a secret: a text or a number, but not a schema called `token`."""
    return isinstance(value, str | int | float) and not isinstance(value, bool)
