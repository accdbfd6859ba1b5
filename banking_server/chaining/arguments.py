"""The arguments of a call: are they valid against the tool's input schema? (TC-C-14 to TC-C-16)"""

import json
from typing import Any

from jsonschema.exceptions import SchemaError, ValidationError, best_match
from jsonschema.protocols import Validator
from jsonschema.validators import Draft202012Validator, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable


def argument_problem(input_schema: dict[str, Any], arguments: dict[str, Any]) -> str | None:
    """Say why `arguments` are not valid against `input_schema`, or return None if they are valid.

    The schema is read as JSON Schema 2020-12 unless it names another dialect. No `$ref` is ever
    fetched: if one points outside the schema, the arguments cannot be validated and so are not
    valid. The sentence names places and rules but repeats no value, so that it can be logged.
    """
    try:
        # validator_for is typed as returning Any; the protocol is what it promises.
        dialect: type[Validator] = validator_for(input_schema, default=Draft202012Validator)
        dialect.check_schema(input_schema)
        registry: Registry[Any] = Registry()
        error = best_match(dialect(input_schema, registry=registry).iter_errors(arguments))
        return None if error is None else _describe(error)
    except SchemaError:
        return "the tool's input schema is not valid JSON Schema"
    except Unresolvable as unresolvable:
        return f"the tool's input schema refers to {unresolvable.ref}, which is not in it"
    except RecursionError:
        return "the arguments or the schema are nested too deeply to be checked"
    except Exception:
        # Anybody can have written the schema. If the validator itself fails (a `$schema` that is
        # not a URI, a number too large for a float), the arguments were not checked, so they count
        # as not valid.
        return "the arguments could not be checked against the tool's input schema"


def _describe(error: ValidationError) -> str:
    place = ".".join(["arguments", *map(str, error.absolute_path)])
    if error.validator in ("required", "additionalProperties", "dependentRequired"):
        # These messages name properties, never values.
        return f"{place}: {error.message}"
    rule = json.dumps(error.validator_value, default=str)
    return f"{place}: must satisfy {error.validator} {rule[:200]}"
