"""Validates arguments against an input schema, with `jsonschema-rs`.

If the validator cannot decide, the server gets no blame.
"""

from typing import Any

import jsonschema_rs

from tool_chaining_conformance.text import cut
from tool_chaining_conformance.values import SHOWN, quote

_Kind = jsonschema_rs.ValidationErrorKind


class CannotTell(Exception):
    """The suite's validator cannot decide; the message is a clause with the reason."""


def first_fault(schema: Any, arguments: Any) -> str | None:
    """Return where `arguments` are not valid against `schema`, or None if they are valid.

    An invalid schema, or a reference to a place that does not exist, is a fault too. Raises
    CannotTell if the validator cannot decide it: a regular expression that it cannot compile or
    that takes too long; another dialect; a reference to another document, since nothing is fetched.
    The sentence repeats no argument, which may be a secret.
    """
    try:
        validator = jsonschema_rs.validator_for(
            schema, validate_formats=False, offline=True, mask="this"
        )
        error = next(validator.iter_errors(arguments), None)
    except jsonschema_rs.ValidationError as unusable:
        if isinstance(unusable.kind, _Kind.Format):
            # It may still be a valid regular expression of ECMA-262.
            raise CannotTell(f"it cannot compile {quote(unusable.instance)}") from None
        reason = f"the input schema cannot be used: {quote(unusable.message)}"
        in_it = not isinstance(unusable.kind, _Kind.Referencing)
        if in_it or unusable.message.startswith("Pointer "):
            return f"no client can validate the arguments: {reason}"
        raise CannotTell(reason) from None
    except Exception as other:
        # A server can send any schema, and the validator can raise any exception.
        raise CannotTell(f"it fails on the input schema: {quote(str(other))}") from None
    if error is not None and isinstance(error.kind, _Kind.BacktrackLimitExceeded):
        raise CannotTell("it takes too long for a pattern of the input schema")
    if error is None:
        return None
    place = "$" + "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path
    )
    return f"{place}: {cut(error.message, SHOWN)}"
