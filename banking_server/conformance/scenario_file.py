"""What server scenarios and client scripts have in common: strict models, read from YAML."""

from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from banking_server.conformance.target.era import Era
from banking_server.conformance.yaml_file import YamlFileError, read_yaml_file

Json = dict[str, Any]
Kebab = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
Name = Annotated[str, Field(min_length=1)]
Ordinal = Annotated[int, Field(ge=1)]
T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)
BOTH_ERAS = tuple(Era)


def _distinct(values: tuple[T, ...]) -> tuple[T, ...]:
    for number, value in enumerate(values):
        if value in values[:number]:
            raise ValueError(f"has {value} twice")
    return values


_UNIQUE: Final = Field(json_schema_extra={"uniqueItems": True})

Several = Annotated[tuple[T, ...], Field(min_length=1)]
"""At least one."""
Distinct = Annotated[tuple[T, ...], AfterValidator(_distinct), _UNIQUE]
"""None of them twice."""
SeveralDistinct = Annotated[tuple[T, ...], Field(min_length=1), AfterValidator(_distinct), _UNIQUE]
"""At least one, and none of them twice."""
Eras = SeveralDistinct[Era]


class ScenarioError(Exception):
    """A scenario file cannot be used; the message names the file, the place and the mistake."""


class Strict(BaseModel):
    """A part of a scenario file; a member that it does not know is a mistake."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


def load(path: Path, model: type[M], *, own: bool = False) -> M:
    """Read a scenario file; `own`: one that comes with the package. Raises ScenarioError."""
    try:
        return model.model_validate(read_yaml_file(path, own=own))
    except YamlFileError as error:
        raise ScenarioError(str(error)) from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        mistake = f"{place}: {_mistake(first)}" if place else _mistake(first)
        raise ScenarioError(f"{path}: {mistake}") from error


_BOUNDS: Final = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than_equal": ("at most", "le"),
}


def _mistake(error: ErrorDetails) -> str:
    """Say what is wrong with a value, in this suite's words rather than in Pydantic's."""
    if error["type"] in _BOUNDS:
        words, bound = _BOUNDS[error["type"]]
        return f"must be {words} {error['ctx'][bound]:g}"
    if error["type"] == "missing":
        return "is missing"
    if error["type"] == "extra_forbidden":
        return "there is no such member"
    return error["msg"].removeprefix("Value error, ").replace("Input should", "must", 1)
