"""The settings of the model and of the agent, from the environment: `BANKING_MODEL_NAME=qwen3`.

Each setting is described once, here. Everything else in this project works without a model. The
client that asks it comes with the extra `model` of this package.
"""

import importlib.util
import os
from typing import Final, Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from banking_server.chaining.bearer import http_url, stays_private

PREFIX: Final = "BANKING_MODEL_"


class ModelNotConfigured(Exception):
    """No model can be asked; the message names the variable, or the extra to install."""


class ModelSettings(BaseSettings):
    """Which model to ask, how, and for how long."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, extra="ignore", frozen=True
    )

    url: str = Field(
        description="The base URL of an OpenAI-compatible chat endpoint, such as "
        "`http://localhost:11434/v1`."
    )
    name: str = Field(description="The model's name, as the endpoint knows it.")
    key: SecretStr | None = Field(
        default=None, description="The endpoint's API key, if it asks for one. A secret."
    )
    tools: Literal["auto", "native", "prompt"] = Field(
        default="auto",
        description="How the model is given tools: by the endpoint's own tool calling, or in the "
        "prompt. `auto` asks the model once to call a harmless tool, and goes by whether it does.",
    )
    format: Literal["auto", "json_schema", "json_object", "none"] = Field(
        default="auto",
        description="How the endpoint is asked to hold replies in the prompt form to the JSON of a "
        "call or an answer: `response_format` of that type, or `none`. `auto` tries them, and goes "
        "by what comes back.",
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
    retries: int = Field(
        default=2,
        ge=0,
        le=10,
        description="How often a request is repeated that timed out, or met 429 or 5xx.",
    )
    turns: int = Field(default=12, ge=1, description="Replies of the model to one request at most.")
    seconds: float = Field(
        default=600,
        gt=0,
        allow_inf_nan=False,
        description="Seconds that one request may take, questions to the user included.",
    )
    tokens: int = Field(
        default=100_000,
        ge=1,
        description="Tokens, prompts and replies together, after which a request gets no further "
        "reply of the model.",
    )
    history: int = Field(
        default=24_000,
        ge=2_000,
        description="Characters of the conversation that go with a request beside what the model "
        "is told at the start, about four to a token. What is older is told in short: what was "
        "asked, each call and its outcome, the answer. The newest words of the user and the newest "
        "results are always whole, and half of this is there for the rest.",
    )
    corrections: int = Field(
        default=3,
        ge=0,
        description="How often in a row the model may put right a call that could not be made.",
    )

    insecure: bool = Field(
        default=False,
        validate_default=True,
        description="Send the key over http to another computer too, for anybody on the way to "
        "read.",
    )

    @field_validator("url")
    @classmethod
    def _http_url(cls, value: str) -> str:
        http_url(value, "http://localhost:11434/v1")
        return value

    @field_validator("insecure")
    @classmethod
    def _needed(cls, value: bool, info: ValidationInfo) -> bool:
        url, key = info.data.get("url"), info.data.get("key")
        secret = key is not None or (url is not None and urlsplit(url).password is not None)
        if url is not None and secret and not value and not stays_private(url):
            raise ValueError(
                "must be true for a key to go to another computer over http, where anybody on the "
                "way can read it; or use https"
            )
        return value

    @field_validator("key")
    @classmethod
    def _fits_a_header(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None:
            text = value.get_secret_value()
            if not text.isascii() or not text.isprintable() or " " in text:
                raise ValueError("holds a character that no key has: a space, say, or a line break")
        return value


_IN_WORDS: Final = {"int_parsing": "must be a whole number", "float_parsing": "must be a number"}
"""What a setting must be, by pydantic's type of the mistake."""


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
        return ModelSettings()
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        name = str(problem["loc"][0])
        variable = PREFIX + name.upper()
        if problem["type"] == "missing":
            raise ModelNotConfigured(
                f"No model is configured: set {variable}. "
                f"{ModelSettings.model_fields[name].description}"
            ) from None
        words = _IN_WORDS.get(problem["type"]) or (
            problem["msg"].removeprefix("Value error, ").removeprefix("Input ")
        )
        # Neither a key nor a URL is repeated: a URL can hold a password.
        shown = (
            "" if name in ("key", "url", "insecure") else f", not {str(problem['input'])[:60]!r}"
        )
        raise ModelNotConfigured(f"{variable}: {words}{shown}") from None
