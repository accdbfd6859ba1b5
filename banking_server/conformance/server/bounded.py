"""Are arguments valid against an input schema? The validator is `jsonschema-rs`.

What the validator itself cannot tell blames no server.
"""

from typing import Any

import jsonschema_rs

from banking_server.conformance.values import SHOWN, shown
from banking_server.text import cut

_Kind = jsonschema_rs.ValidationErrorKind


class CannotTell(Exception):
    """The suite's own validator does not say; the message is the reason, in a clause."""


def first_fault(schema: Any, arguments: Any) -> str | None:
    """Say where `arguments` are not valid against `schema`, or return None if they are valid.

    A schema that is not valid vouches for no arguments, so that is a fault as well, and so is a
    reference to a place that is not there. Raises CannotTell where it is the validator that does
    not know better: a regular expression that it cannot compile or takes too long over; another
    dialect; a reference to something outside, as nothing is fetched. No sentence repeats an
    argument, which may be a secret.
    """
    try:
        validator = jsonschema_rs.validator_for(
            schema, validate_formats=False, offline=True, mask="this"
        )
        error = next(validator.iter_errors(arguments), None)
    except jsonschema_rs.ValidationError as unusable:
        if isinstance(unusable.kind, _Kind.Format):
            # It may be a regular expression of ECMA-262 all the same.
            raise CannotTell(f"it cannot compile {shown(unusable.instance)}") from None
        reason = f"the input schema cannot be used: {shown(unusable.message)}"
        in_it = not isinstance(unusable.kind, _Kind.Referencing)
        if in_it or unusable.message.startswith("Pointer "):
            return f"no client can validate them: {reason}"
        raise CannotTell(reason) from None
    except Exception as other:
        # Servers write what they like into a schema, and there is no end to what goes wrong then.
        raise CannotTell(f"it gives up on the input schema: {shown(str(other))}") from None
    if error is not None and isinstance(error.kind, _Kind.BacktrackLimitExceeded):
        raise CannotTell("it takes too long over a pattern of the input schema")
    if error is None:
        return None
    place = "$" + "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path
    )
    return f"{place}: {cut(error.message, SHOWN)}"
