"""Agents in a YAML file: what each is told, and which of the servers' tools it may use.

    agents:
      - id: teller
        system_prompt: Be brief.
        tools: [list_accounts, get_account_balance]

`tools` names tools, or servers, all of whose tools are then allowed. What is left out allows all.
"""

from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from banking_server.text import one_line


class ConfigurationMistake(Exception):
    """The file cannot be used; the message is one line that names the file and the place."""


class AgentConfiguration(BaseModel):
    """One agent."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    system_prompt: str = ""
    """What the model is told first."""
    tools: tuple[str, ...] | None = None
    """The tools that are allowed, by their servers' own names, or the names of servers; all, if
    left out."""

    @field_validator("tools", mode="before")
    @classmethod
    def _allows_something(cls, value: Any) -> Any:
        if value is None:  # Nothing behind the name is rather forgotten than meant.
            raise ValueError("must be a list; leave it out to allow all tools, or [] for none")
        return value


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    agents: list[AgentConfiguration] = Field(min_length=1)


def load_agent(path: Path, agent_id: str | None = None) -> AgentConfiguration:
    """Return an agent of a file: the one with this id, or the only one.

    Raises ConfigurationMistake.
    """
    try:
        agents = _File.model_validate(yaml.safe_load(path.read_bytes())).agents
    except OSError as error:
        raise ConfigurationMistake(f"{path}: cannot be read: {error.strerror}") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        words = one_line(f"{place}: {first['msg'].removeprefix('Value error, ')}", 200)
        raise ConfigurationMistake(f"{path}: {words}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigurationMistake(f"{path}: is no YAML: {one_line(str(error), 200)}") from None
    names = [agent.id for agent in agents]
    found = [agent for agent in agents if agent_id in (None, agent.id)]
    if len(found) != 1:
        asked = "choose one" if agent_id is None else f"{len(found)} have the id {agent_id!r}"
        raise ConfigurationMistake(f"{path}: {asked} of the agents {', '.join(names)}")
    return found[0]


ANY_AGENT: Final = AgentConfiguration(id="any")
"""An agent that may use whatever the servers have."""
