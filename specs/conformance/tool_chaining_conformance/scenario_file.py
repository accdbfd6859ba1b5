"""Files in YAML: scenarios and client scripts, read into strict models."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tool_chaining_conformance.errors import ScenarioError

Kebab = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
Name = Annotated[str, Field(min_length=1)]
Ordinal = Annotated[int, Field(ge=1)]
T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


Several = Annotated[tuple[T, ...], Field(min_length=1)]
"""At least one."""
SentenceId = Annotated[str, Field(pattern=r"^TC-[DSC]-[0-9]{2}$")]


class _Twice(Exception):
    """A key occurs twice in one mapping."""


class _Loader(yaml.SafeLoader):
    """YAML as JSON: no duplicate keys, and a scalar has its type in JSON, or else is text.

    So `00123`, `12:30`, `no` and a date reach the server as written. No value is null.
    """

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        # Before merging `<<`: a mapping may override merged members.
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        lines: dict[str, int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            mark = key.start_mark
            if key.value in lines:
                raise _Twice(
                    f"line {mark.line + 1}, column {mark.column + 1}: the key {key.value!r} occurs "
                    f"twice, first in line {lines[key.value]}; remove or rename one"
                )
            lines[key.value] = mark.line + 1
        return node


_Loader.yaml_implicit_resolvers = {}
for _tag, _scalar, _first in (
    ("bool", "true|false", "tf"),
    ("null", "null|", ["n", ""]),
    ("int", "-?(?:0|[1-9][0-9]*)", "-0123456789"),
    ("float", r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", "-0123456789"),
    ("merge", "<<", "<"),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_scalar})\Z"), _first
    )


_MOST: Final = 1_000_000
"""The most bytes of a file that a person wrote: `/dev/zero` has no end."""


def _read(path: Path) -> Any:
    try:
        with path.open("rb") as file:
            text = file.read(_MOST + 1).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ScenarioError(f"{path}: cannot be read: {reason}") from error
    if len(text) > _MOST:
        raise ScenarioError(f"{path}: cannot be read: it has more than {_MOST:,} bytes")
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - it is safe
    except _Twice as error:
        raise ScenarioError(f"{path}: {error}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise ScenarioError(f"{path}: is not YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise ScenarioError(f"{path}: it is nested too deeply") from error


class Strict(BaseModel):
    """A part of such a file. An unknown member is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    @model_validator(mode="before")
    @classmethod
    def _known_members(cls, part: Any) -> Any:
        known = [field.alias or name for name, field in cls.model_fields.items()]
        if not isinstance(part, dict | cls):
            what = "is empty; it" if part is None else "this"
            raise ValueError(f"{what} must be a mapping, whose members are {', '.join(known)}")
        for name in part if isinstance(part, dict) else ():
            if name not in known:
                raise ValueError(f"there is no member {name!r}; there are {', '.join(known)}")
        return part


def load(path: Path, model: type[M]) -> M:
    """Read a file. Raises ScenarioError."""
    try:
        return model.model_validate(_read(path))
    except ValidationError as error:
        # A union gives one error per type. The one with the longest place says most.
        worst = max(error.errors(include_url=False), key=lambda each: len(each["loc"]))
        kind, _, fault = worst["type"].rpartition("_")
        message = worst["msg"].removeprefix("Value error, ").replace("True", "true")
        mistake = re.sub("^(Input|String|Tuple) should", "must", message)
        if fault in ("type", "parsing") and kind in _WORDS:
            mistake = f"must be {_WORDS[kind]}"
        elif worst["type"] == "missing":
            mistake = f"{worst['loc'][-1]} is missing"
        line, place = _found(path, worst["loc"])
        raise ScenarioError(f"{path}: line {line}: {place}{': ' * bool(place)}{mistake}") from error


_WORDS: Final = {
    "tuple": "a list",
    "list": "a list",
    "dict": "a mapping",
    "string": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
}
"""YAML's names for pydantic's types."""


def _found(path: Path, place: Sequence[int | str]) -> tuple[int, str]:
    """Return the line of a member in a file, and its place, as far as the file has it."""
    node, parts = yaml.compose(path.read_text("utf-8"), _Loader), list[str]()
    for part in place:
        inner: dict[object, yaml.Node] = {}
        if isinstance(node, yaml.MappingNode):
            inner = {key.value: value for key, value in node.value}
        elif isinstance(node, yaml.SequenceNode):
            inner = dict(enumerate(node.value))
        if part in inner:
            node = inner[part]
            parts.append(str(part))
    return (1 if node is None else node.start_mark.line + 1), ".".join(parts)
