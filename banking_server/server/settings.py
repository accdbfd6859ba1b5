"""All settings, from the environment: `BANKING_PORT=9000`. Command line options take precedence.

Each setting is described here. The table in `README.md` repeats that, and a test compares the two.
"""

from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import urlsplit

from platformdirs import user_data_path
from pydantic import (
    AnyHttpUrl,
    Field,
    PlainValidator,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from banking_server.bank.location import Location, in_full, read_location
from banking_server.bank.money import to_decimal, to_minor
from banking_server.bank.rules import CodeDelivery, Rules
from tool_chaining.errors import ForPeople
from tool_chaining.urls import is_loopback

PREFIX: Final = "BANKING_"

PATH: Final = "/mcp"
"""The path of the HTTP server's MCP endpoint."""

MIN_SECRET_LENGTH: Final = 32

_RULES: Final = Rules()
"""The defaults of the settings about the bank's rules."""


def secrets_in(lines: bytes) -> list[bytes]:
    """Return the secrets, one on each line, the current one first; empty if one is too short."""
    found = list(dict.fromkeys(line.strip() for line in lines.strip().split(b"\n")))
    return found if all(len(secret) >= MIN_SECRET_LENGTH for secret in found) else []


class SettingsError(ForPeople):
    """A setting has an invalid value. The message is one line and names the setting."""


def _default_database() -> Path:
    """Return the default place of the database. Raises `SettingsError` without a home directory."""
    try:
        return (user_data_path("banking-server", appauthor=False) / "bank.db").expanduser()
    except RuntimeError:  # There is no HOME, and the system does not know the user.
        raise SettingsError(
            f"{PREFIX}DATABASE: must name the database's file, because this user has no home "
            "directory: set it, or HOME"
        ) from None


class Settings(BaseSettings):
    """The settings of one server or command."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        # A value may be a secret or contain a password.
        hide_input_in_errors=True,
    )

    database: Annotated[Location, NoDecode, PlainValidator(read_location)] = Field(
        default_factory=_default_database,
        description="The database: a file, or `postgresql://USER:PASSWORD@HOST/DATABASE` (extra "
        "`[postgres]`). By default the file `bank.db` in the user's data directory.",
    )
    customer: str | None = Field(
        default=None,
        description="The customer whom the stdio server serves. By default the first one.",
    )
    secret: SecretStr | None = Field(
        default=None,
        description="The secret behind tokens and confirmation codes: at least 32 characters. By "
        "default the one in the file beside the database, with `.secret` added to its name. "
        "Required with PostgreSQL, the same for all its servers. With several, one on each line, "
        "the first is used and the others are accepted.",
    )
    host: str = Field(default="127.0.0.1", description="The address that the HTTP server binds to.")
    port: int = Field(default=8000, ge=1, le=65535, description="TCP port of the HTTP server.")
    workers: int = Field(default=1, ge=1, le=64, description="Number of server processes.")
    resource_url: str | None = Field(
        default=None,
        description="The URL at which clients reach the HTTP server, and the audience of its "
        "tokens. It must be https, except on loopback. By default `http://HOST:PORT/mcp`. Required "
        "if the host is not a loopback address.",
    )
    issuer: str | None = Field(
        default=None,
        description="The authorization server whose access tokens are accepted: JWTs with this "
        "`iss`, the resource URL as `aud`, and `bank:read` and `bank:transfer` in `scope` or "
        "`scp`. Required unless host and resource URL are both on loopback.",
    )
    jwks_url: str | None = Field(
        default=None,
        description="The URL of the issuer's keys, a JWK Set. Required with an issuer.",
    )
    customer_claim: str = Field(
        default="sub",
        min_length=1,
        description="The claim of the issuer's tokens that holds the customer's id at this bank. "
        "Choose a claim that users cannot set themselves.",
    )
    approval_threshold: Decimal = Field(
        default=to_decimal(_RULES.approval_threshold_minor),
        description="A transfer above this amount needs a manager's approval.",
    )
    transfer_expiry: int = Field(
        default=int(_RULES.transfer_expiry.total_seconds()),
        ge=1,
        le=86400,
        description="Seconds in which a prepared transfer can be confirmed.",
    )
    codes: CodeDelivery | None = Field(
        default=None,
        description="Who gets the confirmation code if the client cannot ask the customer. "
        "`result`: it is in the result, where most models can read it. `asked`: the bank's desk "
        "gives it out. `desk`: the same, and a card asks for the code too.",
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        default="WARNING", description="How much the server logs on standard error."
    )

    @field_validator("secret")
    @classmethod
    def _long_enough(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not secrets_in(value.get_secret_value().encode()):
            raise ValueError(f"must have at least {MIN_SECRET_LENGTH} characters in each line")
        return value

    @field_validator("approval_threshold")
    @classmethod
    def _exact(cls, value: Decimal) -> Decimal:
        to_minor(value)
        return value

    @field_validator("resource_url", "issuer", "jwks_url")
    @classmethod
    def _http_url(cls, value: str | None) -> str | None:
        if value is None:
            return None
        try:
            AnyHttpUrl(value)
            parts = urlsplit(value)
            host = parts.hostname  # None for https:example.com, which pydantic accepts.
        except ValueError:
            host = None
        if not host or parts.fragment or not value.isprintable() or " " in value:
            raise ValueError("must be an http or https URL without a fragment")
        if "@" in parts.netloc:
            raise ValueError("must be a URL without a user or password")
        # Tokens, and the keys that check them, must be sent encrypted.
        if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
            raise ValueError("must be an https URL, except on loopback")
        return value

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if self.resource_url is None and not self.on_loopback:
            raise ValueError(
                f"RESOURCE_URL: must say how clients reach this server, as {self.host!r} is not "
                "a loopback address"
            )
        if self.issuer is None and self.jwks_url is not None:
            raise ValueError("ISSUER: must name the issuer whose keys are at BANKING_JWKS_URL")
        if self.issuer is not None and self.jwks_url is None:
            raise ValueError("JWKS_URL: must say where BANKING_ISSUER publishes its keys")
        if self.issuer is None and not (
            self.on_loopback and is_loopback(urlsplit(self.resource).hostname or "")
        ):
            raise ValueError(
                "ISSUER: must name the authorization server whose tokens are accepted, with "
                f"BANKING_JWKS_URL for its keys, because {self.resource!r} at {self.host!r} is not "
                "on loopback; tokens of `banking-server token` work on loopback only"
            )
        return self

    @property
    def on_loopback(self) -> bool:
        """Whether the HTTP server can be reached from this computer only."""
        return is_loopback(self.host)

    @property
    def resource(self) -> str:
        """The HTTP server's URL, which clients call, and the audience of its tokens."""
        if self.resource_url is not None:
            return self.resource_url
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}{PATH}"

    @property
    def sessions(self) -> bool:
        """Whether clients of 2025-11-25 get sessions over HTTP: only from a server that is alone.

        Servers on PostgreSQL, and several processes, do not know each other's sessions.
        """
        return self.workers == 1 and isinstance(self.database, Path)

    @property
    def secret_path(self) -> Path | None:
        """The file of the secret, used if the environment has none. None with PostgreSQL."""
        if not isinstance(self.database, Path):
            return None
        return self.database.with_name(self.database.name + ".secret")

    def rules(self, *, over_stdio: bool = False) -> Rules:
        """Return the bank's rules with these settings."""
        return Rules(
            approval_threshold_minor=to_minor(self.approval_threshold),
            transfer_expiry=timedelta(seconds=self.transfer_expiry),
            codes=self.codes or ("asked" if over_stdio else "result"),
        )

    def environment(self) -> dict[str, str]:
        """Return the variables that give another process these settings.

        The secret is not included: the other process reads it from the environment or the file.
        """
        names = self.model_fields_set - {"secret", "database"}
        given = self.model_dump(mode="json", include=names)
        if "database" in self.model_fields_set:
            given["database"] = in_full(self.database)
        return {
            PREFIX + name.upper(): str(value) for name, value in given.items() if value is not None
        }


_PROBLEMS: Final = {"int_parsing": "must be a whole number", "decimal_parsing": "must be a number"}
"""The problem with a setting, by pydantic's type of the error."""


def load_settings(**options: Any) -> Settings:
    """Return the settings of the environment; an option that is not None takes precedence.

    Raises `SettingsError`, which names the option or the variable with the wrong value.
    """
    try:
        return Settings(**{name: value for name, value in options.items() if value is not None})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        problem = _PROBLEMS.get(first["type"]) or (
            first["msg"].removeprefix("Value error, ").removeprefix("Input ").rstrip(".")
        )
        if not first["loc"]:
            raise SettingsError(PREFIX + problem) from None
        name = str(first["loc"][0])
        given = str(first["input"])
        # These values may be or contain a secret or a password.
        hidden = name in ("secret", "database") or "@" in given
        instead = "" if hidden else f", not {given[:60]!r}"
        by_option = options.get(name) is not None
        label = f"--{name}" if by_option else f"{PREFIX}{name.upper()}"
        raise SettingsError(f"{label}: {problem}{instead}") from None
