"""Agents in a YAML file: what each is told, and which of the servers' tools it may use.

    agents:
      - id: teller
        system_prompt: Be brief.
        tools: [list_accounts, get_account_balance]

`tools` allows these and no others, whichever server's; what is left out allows all.
"""

from collections import Counter
from pathlib import Path
from typing import Annotated, Any, Final, Self

import yaml
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from banking_server.text import one_line

Name = Annotated[str, StringConstraints(min_length=1, max_length=60, pattern=r"^[\w.-]+$")]
Words = Annotated[str, StringConstraints(min_length=1)]


def _allows_something(value: Any) -> Any:
    # Nothing below the name is rather forgotten than meant, and would allow all.
    if value is None:
        raise ValueError("must be a list; leave it out to allow all tools, or [] to allow none")
    return value


class ConfigurationMistake(Exception):
    """The file cannot be used; the message is one line that names the file and the place."""


class AgentConfiguration(BaseModel):
    """One agent."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    id: Name
    system_prompt: str = ""
    """What the model is told first."""
    tools: Annotated[list[Words] | None, BeforeValidator(_allows_something)] = None
    """The tools that are allowed, by their servers' own names; all, if left out."""


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    agents: list[AgentConfiguration] = Field(min_length=1)

    @model_validator(mode="after")
    def _told_apart(self) -> Self:
        for name, times in Counter(agent.id for agent in self.agents).items():
            if times > 1:
                raise ValueError(f"agents must have different names, and {name!r} is there twice")
        return self


def load_agent(path: Path, agent_id: str | None = None) -> AgentConfiguration:
    """Return an agent of a file: the one with this id, or the only one.

    Raises ConfigurationMistake.
    """
    agents = {agent.id: agent for agent in _read(path).agents}
    if agent_id is None:
        if len(agents) > 1:
            raise ConfigurationMistake(f"{path}: choose an agent: {', '.join(agents)}")
        return next(iter(agents.values()))
    if agent_id not in agents:
        raise ConfigurationMistake(
            f"{path}: there is no agent {agent_id[:_SHOWN]!r}; the agents are: {', '.join(agents)}"
        )
    return agents[agent_id]


def _read(path: Path) -> _File:
    try:
        content: Any = yaml.safe_load(path.read_bytes())
    except OSError as error:
        raise ConfigurationMistake(f"{path}: cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f":{mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "it cannot be read as YAML"
        raise ConfigurationMistake(f"{path}{place}: cannot be used: {problem}") from None
    try:
        return _File.model_validate(content)
    except ValidationError as error:
        raise ConfigurationMistake(f"{path}: {_in_words(error)}") from None


_WORDS: Final = {
    "extra_forbidden": "is not known here",
    "missing": "is missing",
    "string_type": "must be text",
    "list_type": "must be a list",
    "model_type": "must be a mapping of names to values",
    "string_pattern_mismatch": "must be made of letters, digits, and . _ -",
    "string_too_short": "must not be empty",
    "string_too_long": "is too long",
    "too_short": "must not be empty",
}
"""What is wrong, by pydantic's type of the mistake."""

_SHOWN: Final = 60
"""Characters of a wrong value that are shown."""


def _in_words(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    place = "".join(
        f"[{part}]" if isinstance(part, int) else f".{one_line(part, _SHOWN)}"
        for part in first["loc"]
    ).lstrip(".")
    words = _WORDS.get(first["type"]) or first["msg"].removeprefix("Value error, ")
    value = first["input"]
    if first["type"] != "extra_forbidden" and isinstance(value, str | int | float):
        words += f", not {str(value)[:_SHOWN]!r}"
    return f"{place}: {words}" if place else words


ANY_AGENT: Final = AgentConfiguration(id="any")
"""An agent that may use whatever the servers have."""
