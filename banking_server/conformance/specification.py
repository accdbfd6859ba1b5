"""Reads the files of `specs/`, each once.

Libraries are imported where they are used, so that a command that needs no file starts fast.
"""

import json
from functools import cache
from typing import TYPE_CHECKING, Any

from banking_server.packaged import packaged

if TYPE_CHECKING:
    from jsonschema.validators import Draft202012Validator


@cache
def read_text(path: str) -> str:
    """Return the content of a file of `specs/`."""
    return (packaged("specs") / path).read_text("utf-8")


@cache
def read_yaml(path: str) -> Any:
    """Return the content of a YAML file of `specs/`. It is shared: do not change it."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # The C form, if PyYAML has it.
    return yaml.load(read_text(path), loader)  # noqa: S506


@cache
def schema_of(name: str) -> "Draft202012Validator":
    """Return the validator of a definition in `specs/next-tool.schema.json`."""
    from jsonschema.validators import Draft202012Validator

    schema = json.loads(read_text("next-tool.schema.json"))
    return Draft202012Validator({**schema["$defs"][name], "$defs": schema["$defs"]})
