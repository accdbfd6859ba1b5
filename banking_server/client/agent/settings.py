"""Which model, from the environment, and which agent, from a YAML file."""

import importlib.util
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from tool_chaining.errors import ForPeople
from tool_chaining.text import one_line
from tool_chaining.urls import http_url, may_be_a_header, stays_private

if TYPE_CHECKING:
    from pydantic_ai.models import Model

PREFIX: Final = "BANKING_MODEL_"
_BOTH: Final = f"{PREFIX}URL (`http://localhost:11434/v1`, say) and {PREFIX}NAME"


class ModelNotConfigured(ForPeople):
    """No model is configured; the message names the variable, or the extra to install."""


class ConfigurationMistake(ForPeople):
    """An agent cannot be used; the message is one line that names the file or the server."""


class ModelSettings(BaseSettings):
    """Which model to ask, and how: `BANKING_MODEL_NAME=qwen3`, and so on for each field."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, frozen=True, validate_default=False
    )

    url: str | None = Field(
        default=None,
        description="The base URL of an OpenAI-compatible chat endpoint, such as "
        "`http://localhost:11434/v1`. A key or a password goes to another computer over https "
        "only.",
    )
    name: str = Field(
        description="The model's name, as the endpoint knows it. Without a URL, Pydantic AI's name "
        "for a model, such as `anthropic:claude-sonnet-4-5`, whose package and key it needs."
    )
    key: SecretStr | None = Field(
        default=None, description="The endpoint's API key, if it asks for one. A secret."
    )
    tools: Literal["native", "prompt"] = Field(
        default="native",
        description="How the model gets the tools: by the endpoint's own tool calling (`native`), "
        "or described in the prompt, which works with any model (`prompt`).",
    )

    @field_validator("url", "key")
    @classmethod
    def _stays_private(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse a key, or a URL with a password, that would go to another computer unencrypted."""
        if info.field_name == "url":
            url, secret = value, http_url(value, "http://localhost:11434/v1").password
        else:
            url, secret = info.data.get("url") or "https:", value.get_secret_value()
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

    Raises ModelNotConfigured, also if the extra `model` is not installed.
    """
    if importlib.util.find_spec("pydantic_ai") is None:
        raise ModelNotConfigured(
            "The extra `model` is not installed: in a checkout, pip install '.[model]'. "
            f"A language model also needs {_BOTH}."
        )
    try:
        settings = ModelSettings()
    except ValidationError as error:
        name, problem = _first(error)
        # Do not repeat the value: a key is a secret, and a URL can hold a password.
        is_missing = problem == "Field required"
        words = f" is not set. A model needs {_BOTH}" if is_missing else f": {problem}"
        raise ModelNotConfigured(f"{PREFIX}{name.upper()}{words}.") from None
    if settings.url is None and ":" not in settings.name:
        raise ModelNotConfigured(f"{PREFIX}URL is not set. A model needs {_BOTH}.")
    return settings


@asynccontextmanager
async def connected_model(settings: ModelSettings) -> AsyncIterator["Model"]:
    """Give the model, and close its connections at the end of the block.

    Raises ModelNotConfigured if Pydantic AI has no such model, or needs more for it.
    """
    # Slow to import, and only there with the extra `model`.
    from openai import AsyncOpenAI
    from pydantic_ai import UserError
    from pydantic_ai.models import infer_model
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    from tool_chaining.hosting.untrusted import ResilientHttpClient

    if settings.url is None:
        try:
            model = infer_model(settings.name)
        except (UserError, ValueError, ImportError) as error:
            raise ModelNotConfigured(f"{PREFIX}NAME: {one_line(str(error), 300)}") from None
        async with model:
            yield model
        return
    # The client insists on a key; endpoints without keys ignore it.
    key = settings.key.get_secret_value() if settings.key else "none"
    async with AsyncOpenAI(
        base_url=settings.url, api_key=key, http_client=ResilientHttpClient(url=settings.url)
    ) as client:
        yield OpenAIChatModel(settings.name, provider=OpenAIProvider(openai_client=client))


def model_failure(settings: ModelSettings, error: Exception) -> str:
    """Say why a model gave no reply, in one line for people, without the key."""
    why = str(error).replace("status_code: ", "HTTP ", 1) or type(error).__name__
    why = one_line(why, 300).rstrip(".")
    if settings.key:
        why = why.replace(settings.key.get_secret_value(), "***")
    where = f" at {urlsplit(settings.url).netloc.rpartition('@')[2]}" if settings.url else ""
    return (
        f"The model{where} gave no usable reply: {why}. {PREFIX}URL, {PREFIX}NAME and "
        f"{PREFIX}KEY say which model is asked."
    )


class AgentConfiguration(BaseModel, frozen=True, extra="forbid"):
    """One agent: its system prompt, and the tools that it may use."""

    id: str = "any"
    system_prompt: str = ""
    """The start of the system prompt."""
    tools: tuple[str, ...] = ("*",)
    """The allowed tools, by their servers' own names, or the names of servers; `*` is all."""


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


def _first(error: ValidationError) -> tuple[str, str]:
    """Return the place of the first mistake, and what is wrong there, without the value."""
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    return place, one_line(first["msg"].removeprefix("Value error, "), 200)
