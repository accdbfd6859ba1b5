"""Agents in a YAML file: what each is told, and which of the servers' tools it may use.

    agents:
      - id: teller
        system_prompt: Be brief.
        tools: [list_accounts, get_account_balance]

`tools` names tools, or servers, all of whose tools are then allowed. What is left out allows all.
"""

from pathlib import Path
from typing import Annotated, Any, Final

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    field_validator,
)

from banking_server.text import one_line

Words = Annotated[str, StringConstraints(min_length=1)]


class ConfigurationMistake(Exception):
    """The file cannot be used; the message is one line that names the file and the place."""


class AgentConfiguration(BaseModel):
    """One agent."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    id: Words
    system_prompt: str = ""
    """What the model is told first."""
    tools: tuple[Words, ...] | None = Field(default=None, strict=False)
    """The tools that are allowed, by their servers' own names, or the names of servers; all, if
    left out."""

    @field_validator("tools", mode="before")
    @classmethod
    def _allows_something(cls, value: Any) -> Any:
        if value is None:  # Nothing behind the name is rather forgotten than meant.
            raise ValueError("must be a list; leave it out to allow all tools, or [] for none")
        return value


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    agents: list[AgentConfiguration] = Field(min_length=1)


def load_agent(path: Path, agent_id: str | None = None) -> AgentConfiguration:
    """Return an agent of a file: the one with this id, or the only one.

    Raises ConfigurationMistake.
    """
    agents = _read(path).agents
    names = [agent.id for agent in agents]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ConfigurationMistake(f"{path}: two agents have the id {twice[0]!r}")
    if agent_id is None and len(agents) > 1:
        raise ConfigurationMistake(f"{path}: choose an agent: {', '.join(names)}")
    found = [agent for agent in agents if agent_id in (None, agent.id)]
    if not found:
        raise ConfigurationMistake(
            f"{path}: there is no agent {str(agent_id)[:_SHOWN]!r}; the agents are: "
            f"{', '.join(names)}"
        )
    return found[0]


def _read(path: Path) -> _File:
    try:
        return _File.model_validate(yaml.safe_load(path.read_bytes()))
    except OSError as error:
        raise ConfigurationMistake(f"{path}: cannot be read: {error.strerror}") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(one_line(str(part), _SHOWN) for part in first["loc"])
        words = _WORDS.get(first["type"], first["msg"].removeprefix("Value error, "))
        raise ConfigurationMistake(f"{path}: {f'{place}: ' if place else ''}{words}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        words = one_line(str(error), 200) or "it cannot be read as YAML"
        raise ConfigurationMistake(f"{path}: cannot be used: {words}") from None


_WORDS: Final = {
    "extra_forbidden": "is not known here",
    "missing": "is missing",
    "model_type": "must be a mapping of names to values",
}
"""What is wrong, by pydantic's type of the mistake."""

_SHOWN: Final = 60
"""Characters of somebody else's name that are shown."""

ANY_AGENT: Final = AgentConfiguration(id="any")
"""An agent that may use whatever the servers have."""
