"""Work whose length a server decides, in a process of its own that ends when it takes too long.

Nothing else can stop a validator or a regular expression on its way. The process is started when it
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


def first_fault(schema: Any, arguments: Any) -> str | None:
    """Say where `arguments` are not valid against `schema`, or return None if they are valid.

    A schema that cannot be used vouches for no arguments, so that is a fault as well: one that is
    not valid, whose dialect is not known, or that refers to something outside itself, as nothing is
    fetched; and one that takes too long. The sentence repeats no value, which may be a secret.
    """
    try:
        mark = hashlib.sha256(json.dumps(schema).encode()).hexdigest()
        if mark in _given_up:
            return _TOO_LONG
        fault: str | None = _process.ask({"schema": schema, "arguments": arguments})
    except TooLong:
        _given_up.add(mark)
        return _TOO_LONG
    except (RecursionError, ValueError):
        return "no client can validate them: they, or the input schema, are nested too deeply"
    return fault


def found_in(pattern: str, text: str) -> str | None:
    """Return what a regular expression finds in `text`: its first group, or the whole match.

    None if it finds nothing. Raises TooLong.
    """
    found: str | None = _process.ask({"pattern": pattern, "text": text})
    return found


_TOO_LONG: Final = "no client can validate them: it takes far too long, or too much memory"

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
                self._started.communicate(timeout=1)
            self._started.kill()
            with contextlib.suppress(OSError, ValueError):
                self._started.wait()
            self._started = None


_process: Final = _Process()
atexit.register(_process.end)


# In the process


def _fault(schema: Any, arguments: Any) -> str | None:
    import jsonschema_rs

    try:
        validator = jsonschema_rs.validator_for(schema, validate_formats=False, offline=True)
        error = next(validator.iter_errors(arguments), None)
    except MemoryError:
        raise
    except BaseException as unusable:
        # Servers write what they like into a schema, and there is no end to what goes wrong then;
        # what the library's own code gives up on is no Exception.
        reason = str(unusable).partition("\n")[0]
        return f"no client can validate them: the input schema cannot be used: {shown(reason)}"
    if error is None:
        return None
    if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.BacktrackLimitExceeded):
        return (
            "no client can validate them: a regular expression of the input schema takes too long"
        )
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


def _found(pattern: str, text: str) -> str | None:
    match = re.search(pattern, text)
    if match is None:
        return None
    found: str | None = match[1] if match.re.groups else match[0]
    return found


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
        answer = _found(**asked) if "pattern" in asked else _fault(**asked)
        faulthandler.cancel_dump_traceback_later()
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
