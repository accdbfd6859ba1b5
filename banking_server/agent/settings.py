"""The settings of the model, from the environment: `BANKING_MODEL_NAME=qwen3`.

Each setting is described once, here. Everything else in this project works without a model. The
client that asks it comes with the extra `model` of this package.
"""

import importlib.util
import os
import re
from typing import Final, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from banking_server.chaining.bearer import http_url, stays_private

PREFIX: Final = "BANKING_MODEL_"


class ModelNotConfigured(Exception):
    """No model can be asked; the message names the variable, or the extra to install."""


class ModelSettings(BaseModel):
    """Which model to ask, and how."""

    model_config = ConfigDict(frozen=True)

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
        description="How the model is given tools: `prompt` describes them in the prompt, which "
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

    @field_validator("url")
    @classmethod
    def _http_url(cls, value: str) -> str:
        if http_url(value, "http://localhost:11434/v1").password:
            _stays_private(value)
        return value

    @field_validator("key")
    @classmethod
    def _can_be_sent(cls, value: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        if value is not None and not re.fullmatch("[!-~]*", value.get_secret_value()):
            raise ValueError("holds a character that no key has: a space, say, or a line break")
        if value is not None and "url" in info.data:
            _stays_private(info.data["url"])
        return value


def _stays_private(url: str) -> None:
    if not stays_private(url):
        raise ValueError(
            "is a secret, and would go to another computer over http, where anybody on the way "
            "can read it; use https"
        )


FROM_ENVIRONMENT: Final = tuple(ModelSettings.model_fields)
"""The settings that are variables."""


def is_configured() -> bool:
    """Whether the environment names a model, or begins to: its URL, or its name."""
    return any(os.environ.get(PREFIX + name) for name in ("URL", "NAME"))


def load_model_settings() -> ModelSettings:
    """Return the settings of the environment.

    Raises ModelNotConfigured, also if the client that asks models is not installed.
    """
    if importlib.util.find_spec("openai") is None:
        raise ModelNotConfigured(
            "A language model needs the extra `model`, which is not installed: "
            "in a checkout, pip install '.[model]'."
        )
    try:
        given = {name: os.environ.get(PREFIX + name.upper()) for name in FROM_ENVIRONMENT}
        return ModelSettings.model_validate({name: one for name, one in given.items() if one})
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        name = str(problem["loc"][0])
        variable = PREFIX + name.upper()
        if problem["type"] == "missing":
            raise ModelNotConfigured(
                f"No model is configured: set {variable}. "
                f"{ModelSettings.model_fields[name].description}"
            ) from None
        words = problem["msg"].removeprefix("Value error, ").removeprefix("Input ")
        # Neither a key nor a URL is repeated: a URL can hold a password.
        shown = "" if name in ("key", "url") else f", not {str(problem['input'])[:60]!r}"
        raise ModelNotConfigured(f"{variable}: {words}{shown}") from None
