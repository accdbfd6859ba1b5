"""Secrets never reach a report: neither the console, nor a file, nor an error message."""

import math
import re
import string
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

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
"""Characters of a secret that is found wherever it stands."""


def forms_of(secret: str) -> re.Pattern[str]:
    """Return a search for a secret in each form in which a text can hold it.

    These are: as it is; escaped in JSON, in a URL, in HTML, character by character or in part, and
    several times over; in hex; in Base64, whatever stands before and after it there. A secret
    shorter than `SHORTEST` is found as it is, where it stands as a word by itself: as a part of
    others it stands everywhere by chance.
    """
    if len(secret) < SHORTEST:
        return re.compile(rf"(?<!\w){re.escape(secret)}(?!\w)" if secret else "(?!)")
    raw = secret.encode("utf-8", "surrogatepass")
    in_base64 = [_in_base64(raw, before) for before in range(3)]
    forms = ["".join(_escaped(secret)), re.escape(secret), "".join(map(_hex, raw)), *in_base64]
    return re.compile("|".join(forms))


def _hex(number: int, digits: int = 2) -> str:
    """Return a pattern for a number in hex, in either case."""
    return "".join(
        f"[{each}{each.upper()}]" if each.isalpha() else each for each in f"{number:0{digits}x}"
    )


_SHORT_ESCAPES: Final = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}
_ENTITIES: Final = {"&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "apos"}
_BACKSLASH: Final = r"(?:\\|%(?:25)*+5[cC])"
_ESCAPE: Final = rf"(?<!\\)(?<!%5[cC]){_BACKSLASH}{{1,64}}+"
"""The backslashes of an escape, as each text of JSON within another doubles them. All of them, so
that a long run is looked at once."""
_AMPERSAND: Final = rf"(?:&|%(?:25)*+26|{_ESCAPE}u0026)(?:amp(?:;|%(?:25)*+3[bB]))"
_NUMBER: Final = "(?:#|%(?:25)*+23)"
_END: Final = "(?:;|%(?:25)*+3[bB])"


def _escaped(secret: str) -> Iterator[str]:
    """Yield a pattern for each character, or each run of backslashes, in every way to escape it.

    Whoever escapes a text twice escapes the backslashes, `%` and `&` of the first time too.
    """
    after_backslashes = False
    for run in re.findall(r"\\+|[^\\]", secret):
        # What escapes the next character was taken together with the secret's own backslashes.
        escape = "" if after_backslashes else _ESCAPE
        after_backslashes = run[0] == "\\"
        if after_backslashes:
            # Each may be doubled several times over, or escaped by its number.
            entity = f"{_AMPERSAND}*+{_NUMBER}(?:92|[xX]5[cC]){_END}"
            each = f"{_BACKSLASH}(?:u005[cC])?+|{entity}"
            yield rf"(?<!\\)(?:{each}){{{len(run)},{64 * len(run)}}}+"
        elif run in "\"'/":
            ways = "|".join([*_ways_to_write(run, ""), re.escape(run)])
            yield f"(?:{escape})?+(?:{ways})"
        else:
            yield f"(?:{'|'.join([*_ways_to_write(run, escape), re.escape(run)])})"


def _ways_to_write(character: str, escape: str) -> Iterator[str]:
    """Yield a pattern for each way in which a character is escaped."""
    # The longer forms come first: what is left of one would tell that it was one.
    yield f"{_AMPERSAND}*+{_NUMBER}(?:0*+{ord(character)}|[xX]0*+{_hex(ord(character), 1)}){_END}"
    if character == "&":
        yield f"{_AMPERSAND}++"
    elif character in _ENTITIES:
        yield f"{_AMPERSAND}*+{_ENTITIES[character]}{_END}"
    units = character.encode("utf-16-be", "surrogatepass")
    codes = [_hex(int.from_bytes(units[at : at + 2]), 4) for at in range(0, len(units), 2)]
    yield escape + _ESCAPE.join(f"u{code}" for code in codes)
    if character in _SHORT_ESCAPES:
        yield escape + _SHORT_ESCAPES[character]
    if character == " ":
        yield r"\+|%(?:25)*+2[bB]"
    yield "".join(
        "%(?:25)*" if byte == ord("%") else f"%(?:25)*+{_hex(byte)}"
        for byte in character.encode("utf-8", "surrogatepass")
    )


_BASE64: Final = string.ascii_uppercase + string.ascii_lowercase + string.digits
_BASE64_LAST: Final = (r"(?:\+|-|%2[bB])", r"(?:\\*+/|_|%2[fF])")
"""The last two of the 64 characters, in either alphabet, and as they are escaped."""


def _in_base64(raw: bytes, before: int) -> str:
    """Return a pattern for `raw` in Base64, `before` bytes after the beginning of a group.

    The characters at both ends hold bits of what stands beside it, too: they may be any that has
    the bits of `raw`.
    """
    known = f"{'.' * 8 * before}{''.join(f'{byte:08b}' for byte in raw)}"
    known += "." * (-len(known) % 6)
    pattern = []
    for at in range(before * 8 // 6 * 6, len(known), 6):
        bits = re.compile(known[at : at + 6])
        ways = [number for number in range(64) if bits.match(f"{number:06b}")]
        plain = "".join(_BASE64[number] for number in ways if number < 62)
        last = [_BASE64_LAST[number - 62] for number in ways if number >= 62]
        either = [*([f"[{plain}]"] if plain else []), *last]
        pattern.append(f"(?:{'|'.join(either)})" if len(either) > 1 else either[0])
    return "".join(pattern)


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
        self._forms: dict[str, re.Pattern[str]] = {}
        for value in values:
            self.add(value)

    def add(self, value: str) -> None:
        """Redact this very value wherever it appears from now on."""
        if value and value not in self._forms:
            known = {**self._forms, value: forms_of(value)}
            # A new mapping, since another thread may be walking through this one.
            self._forms = {each: known[each] for each in sorted(known, key=len, reverse=True)}

    def text(self, text: str) -> str:
        """Return `text` without the known secret values."""
        for forms in self._forms.values():
            text = forms.sub(REDACTED, text)
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
