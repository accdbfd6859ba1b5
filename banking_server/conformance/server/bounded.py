"""Work whose length a server decides, in a process of its own that ends when it takes too long.

Nothing else can stop a validator on its way. The process is started when it
is first needed, and serves every later call; one that ended is replaced.
"""

import atexit
import contextlib
import faulthandler
import hashlib
import json
import os
import re
import subprocess
import sys
import threading
from typing import Any, Final

from banking_server.conformance.values import shown

SECONDS: Final = 5
"""Seconds that one piece of work may take."""

MEMORY: Final = 2 * 1024**3
"""Bytes of address space that the process may take, where the system can bound them."""


class TooLong(Exception):
    """It took longer than `SECONDS`, or more memory than there is for it."""


class CannotTell(Exception):
    """The suite's own validator does not say; the message is the reason, in a clause."""


def first_fault(schema: Any, arguments: Any) -> str | None:
    """Say where `arguments` are not valid against `schema`, or return None if they are valid.

    A schema that is not valid vouches for no arguments, so that is a fault as well, and so is a
    reference to a place that is not there. Raises CannotTell where it is the validator that does
    not know better: a regular expression that it cannot compile, or may read otherwise than
    ECMA-262; another dialect; a reference to something outside, as nothing is fetched; too much
    work. No sentence repeats an argument, which may be a secret.
    """
    try:
        mark = hashlib.sha256(json.dumps(schema).encode()).hexdigest()
        if mark in _given_up:
            raise CannotTell(_TOO_LONG)
        answer: list[str | None] = _process.ask({"schema": schema, "arguments": arguments})
    except TooLong:
        _given_up.add(mark)
        raise CannotTell(_TOO_LONG) from None
    except (RecursionError, ValueError):
        raise CannotTell("they, or the input schema, are nested too deeply for it") from None
    fault, unknown = answer
    if unknown is not None:
        raise CannotTell(unknown)
    return fault


_TOO_LONG: Final = "the input schema takes it too long, or too much memory"

_given_up: set[str] = set()
"""Digests of the schemas that took too long: they are not tried again."""


class _Process:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started: subprocess.Popen[bytes] | None = None

    def ask(self, asked: dict[str, Any]) -> Any:
        """Have a piece of work done. Raises TooLong."""
        line = json.dumps({"seconds": SECONDS, **asked}).encode() + b"\n"
        with self._lock:
            process = self._running()
            answer = b""
            if process.stdin is not None and process.stdout is not None:
                with contextlib.suppress(OSError):
                    process.stdin.write(line)
                    process.stdin.flush()
                    answer = process.stdout.readline()
            if not answer:
                self.end()
                raise TooLong
            return json.loads(answer)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._started is None:
            self._started = subprocess.Popen(  # noqa: S603 - the command is our own
                [sys.executable, "-m", __name__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        return self._started

    def end(self) -> None:
        """End the process, if there is one."""
        if self._started is not None:
            # It ends with its input, unless it is at work.
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                self._started.communicate(timeout=10)
            self._started.kill()
            with contextlib.suppress(OSError, ValueError):
                self._started.wait()
            self._started = None


_process: Final = _Process()
atexit.register(_process.end)


# In the process


READ_OTHERWISE: Final = re.compile(r"(?<!\\)(?:\\\\)*(?:\\[1-9bBAzZGK]|&&)")
"""What the validator reads otherwise than ECMA-262: a reference to a group that took no part, the
end of a word that is not ASCII, and what it takes for syntax of its own."""

PLAIN: Final = frozenset(
    {"type", "enum", "const", "required", "minimum", "maximum", "exclusiveMinimum", "multipleOf"}
    | {"exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems", "uniqueItems"}
    | {"minProperties", "maxProperties"}
)
"""Rules that no regular expression has a part in."""


def _fault(schema: Any, arguments: Any) -> tuple[str | None, str | None]:
    """Return what is wrong, and why that cannot be told: one of them, or neither."""
    import jsonschema_rs

    kinds = jsonschema_rs.ValidationErrorKind
    try:
        validator = jsonschema_rs.validator_for(schema, validate_formats=False, offline=True)
        error = next(validator.iter_errors(arguments), None)
    except MemoryError:
        raise
    except BaseException as unusable:
        # Servers write what they like into a schema, and there is no end to what goes wrong then;
        # what the library's own code gives up on is no Exception.
        reason = shown(str(unusable).partition("\n")[0])
        if not isinstance(unusable, jsonschema_rs.ValidationError):
            return None, f"it gives up on the input schema: {reason}"
        if isinstance(unusable.kind, kinds.Format) and unusable.kind.format == "regex":
            # It may be one of ECMA-262 all the same: the library has a syntax of its own.
            return None, f"it cannot compile the pattern {shown(unusable.instance)}"
        if isinstance(unusable.kind, kinds.Format) or (
            isinstance(unusable.kind, kinds.Referencing)
            and not unusable.message.startswith("Pointer ")
        ):
            return None, f"it cannot use the input schema: {reason}"
        return f"no client can validate them: the input schema cannot be used: {reason}", None
    if error is None:
        return None, None
    if isinstance(error.kind, kinds.BacktrackLimitExceeded):
        return None, f"it takes too long over a pattern of the input schema: {_at(error)}"
    if not (error.schema_path and error.schema_path[-1] in PLAIN):
        for pattern in _patterns(schema):
            if READ_OTHERWISE.search(pattern):
                return None, f"it may read the pattern {shown(pattern)} otherwise than ECMA-262"
    return _said(schema, error), None


def _patterns(schema: Any) -> list[str]:
    """Return every regular expression of a schema, and whatever else stands where one would."""
    found: list[str] = []
    left = [schema]
    while left:
        part = left.pop()
        if isinstance(part, dict):
            named = part.get("patternProperties")
            found += named if isinstance(named, dict) else ()
            found += [rule for rule in (part.get("pattern"),) if isinstance(rule, str)]
            left += part.values()
        elif isinstance(part, list):
            left += part
    return found


def _said(schema: Any, error: Any) -> str:
    place = "$" + "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path
    )
    path = error.schema_path
    rule: Any = schema
    for part in path:
        # Not the library's own sentence: that repeats the value, which may be a secret.
        try:
            rule = rule[part]
        except (KeyError, IndexError, TypeError):
            return f"{place} breaks the schema's rule {path[-1]}"
    if not path:
        return f"{place} breaks the schema, which allows nothing"
    return f"{place} breaks the schema's rule {path[-1]}: {shown(rule)}"


def _at(error: Any) -> str:
    return "/".join(str(part) for part in error.schema_path)


def _bound_memory() -> None:
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    except (ImportError, OSError, ValueError):
        pass  # Not every system has it; the time is bounded anyway.


def main() -> None:
    """Do what stands on each line of the standard input, until there is no more."""
    _bound_memory()
    for line in sys.stdin.buffer:
        # A thread that no other work can hold up, not even what keeps the interpreter to itself.
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        asked = json.loads(line)
        faulthandler.dump_traceback_later(asked.pop("seconds"), exit=True)
        answer = _fault(**asked)
        faulthandler.cancel_dump_traceback_later()
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
