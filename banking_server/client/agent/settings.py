"""Which model, from the environment, and which agent, from a YAML file."""

import importlib.util
import os
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, Field, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from tool_chaining.errors import ForPeople
from tool_chaining.text import one_line
from tool_chaining_proxy.hosting.urls import http_url, may_be_a_header, stays_private

PREFIX: Final = "BANKING_MODEL_"
_BOTH: Final = f"{PREFIX}URL (`http://localhost:11434/v1`, say) and {PREFIX}NAME"


class ModelNotConfigured(ForPeople):
    """No model is configured; the message names the variable, or the extra to install."""


class ConfigurationMistake(ForPeople):
    """The file cannot be used; the message is one line that names the file and the place."""


class ModelSettings(BaseSettings):
    """Which model to ask, and how: `BANKING_MODEL_NAME=qwen3`, and so on for each field."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, frozen=True, validate_default=False
    )

    url: str = Field(
        description="The base URL of an OpenAI-compatible chat endpoint, such as "
        "`http://localhost:11434/v1`. A key or a password goes to another computer over https only."
    )
    name: str = Field(description="The model's name, as the endpoint knows it.")
    key: SecretStr | None = Field(
        default=None, description="The endpoint's API key, if it asks for one. A secret."
    )
    tools: Literal["prompt", "native"] = Field(
        default="prompt",
        description="How the model gets the tools: `prompt` describes them in the prompt, which "
        "works with any model; `native` uses the endpoint's own tool calling.",
    )
    temperature: float | None = Field(
        default=None, ge=0, le=2, description="Passed on if given. By default the endpoint's own."
    )
    timeout: float = Field(
        default=120,
        gt=0,
        allow_inf_nan=False,
        description="Seconds that the endpoint may be silent in a reply.",
    )

    @field_validator("url", "key")
    @classmethod
    def _stays_private(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse a key, or a URL with a password, that would go to another computer unencrypted."""
        if info.field_name == "url":
            url, secret = value, http_url(value, "http://localhost:11434/v1").password
        else:
            url, secret = info.data.get("url", "https:"), value.get_secret_value()
            if not may_be_a_header(secret) or " " in secret:
                raise ValueError(
                    "contains a space, a line break or another character that keys cannot have"
                )
        if secret and not stays_private(url):
            raise ValueError("is a secret, and would go to another computer over http; use https")
        return value


def is_configured() -> bool:
    """Whether the environment has a model's URL or name."""
    return any(os.environ.get(PREFIX + name) for name in ("URL", "NAME"))


def load_model_settings() -> ModelSettings:
    """Return the settings of the environment.

    Raises ModelNotConfigured, also if the model client is not installed.
    """
    if importlib.util.find_spec("openai") is None:
        raise ModelNotConfigured(
            "The extra `model` is not installed: in a checkout, pip install '.[model]'. "
            f"A language model also needs {_BOTH}."
        )
    try:
        return ModelSettings()
    except ValidationError as error:
        name, problem = _first(error)
        # Do not repeat the value: a key is a secret, and a URL can hold a password.
        is_missing = problem == "Field required"
        words = f" is not set. A model needs {_BOTH}" if is_missing else f": {problem}"
        raise ModelNotConfigured(f"{PREFIX}{name.upper()}{words}.") from None


def _first(error: ValidationError) -> tuple[str, str]:
    """Return the place of the first mistake, and what is wrong there, without the value."""
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    return place, one_line(first["msg"].removeprefix("Value error, "), 200)


class AgentConfiguration(BaseModel, frozen=True, extra="forbid"):
    """One agent: its system prompt, and the tools that it may use."""

    id: str
    system_prompt: str = ""
    """The start of the system prompt."""
    tools: tuple[str, ...] | None = None
    """The allowed tools, by their servers' own names, or the names of servers; all, if left
    out."""

    @field_validator("tools", mode="before")
    @classmethod
    def _allows_something(cls, value: Any) -> Any:
        if value is None:  # An empty value is probably a mistake.
            raise ValueError("must be a list; leave it out to allow all tools, or [] for none")
        return value


class _File(BaseModel, extra="forbid"):
    agents: list[AgentConfiguration] = Field(min_length=1)


def load_agent(path: Path, agent_id: str | None = None) -> AgentConfiguration:
    """Return an agent of a file: the one with this id, or the only one.

    Raises ConfigurationMistake.
    """
    import yaml  # Most commands read no such file.

    try:
        agents = _File.model_validate(yaml.safe_load(path.read_bytes())).agents
    except ValidationError as error:
        raise ConfigurationMistake(f"{path}: {': '.join(_first(error))}") from None
    except (OSError, yaml.YAMLError, ValueError, RecursionError) as error:
        why = one_line(str(error), 200)
        raise ConfigurationMistake(f"{path}: cannot be read as YAML: {why}") from None
    found = [agent for agent in agents if agent_id in (None, agent.id)]
    if len(found) != 1:
        names = ", ".join(agent.id for agent in agents)
        raise ConfigurationMistake(f"{path}: choose one of the agents {names}")
    return found[0]


ANY_AGENT: Final = AgentConfiguration(id="any")
"""An agent that may use all tools."""
