"""Reads the files of `specs/`, each once.

Libraries are imported where they are used, so that a command that needs no file starts fast.
"""

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from jsonschema_rs import Validator

_INSTALLED: Final = Path(__file__).with_name("specs")

SPECS: Final = _INSTALLED if _INSTALLED.is_dir() else Path(__file__).parents[2]
"""The folder `specs/`: inside the package if it is installed, around it in a checkout."""


@cache
def read_text(path: str) -> str:
    """Return the content of a file of `specs/`."""
    return (SPECS / path).read_text("utf-8")


@cache
def read_yaml(path: str) -> Any:
    """Return the content of a YAML file of `specs/`. It is shared: do not change it."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # The C form, if PyYAML has it.
    return yaml.load(read_text(path), loader)  # noqa: S506


@cache
def schema_of(name: str) -> "Validator":
    """Return the validator of a definition in `specs/next-tool.schema.json`."""
    import jsonschema_rs

    schema = json.loads(read_text("next-tool.schema.json"))
    return jsonschema_rs.validator_for({**schema["$defs"][name], "$defs": schema["$defs"]})
