"""Agents in a YAML file: what each is told, which servers it has, and which of their tools.

    agents:
      - id: teller
        system_prompt: Be brief.
        tools: [list_accounts, get_account_balance]
        servers:
          - name: bank
            command: [banking-server, --customer, CUST001]
          - name: shop
            url: https://shop.example/mcp
            token_variable: SHOP_TOKEN
            tools: [find_door]

`tools` allows these and no others: of all servers, or of one. What is left out allows all. A
secret stands in no file: `token_variable` names the environment variable that holds it. A name
stands once in a mapping, and nothing is taken over from elsewhere in the file (`&`, `*`, `<<`).
"""

import re
from collections import Counter
from pathlib import Path
from typing import Annotated, Any, Final, Self
from urllib.parse import parse_qsl

import yaml
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)

from banking_server.chaining.bearer import http_url
from banking_server.text import one_line, printable

MAX_FILE: Final = 1_000_000
"""Bytes that a file may have."""

DEPTH: Final = 20
"""Levels of nesting that a file may have."""

DIGITS: Final = 20
"""Characters that a number may have."""

Name = Annotated[str, StringConstraints(min_length=1, max_length=60, pattern=r"^[\w.-]+$")]
Variable = Annotated[str, StringConstraints(max_length=100, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Words = Annotated[str, StringConstraints(min_length=1)]


def _allows_something(value: Any) -> Any:
    # Nothing below the name is rather forgotten than meant, and would allow all.
    if value is None:
        raise ValueError("must be a list; leave it out to allow all tools, or [] to allow none")
    return value


Tools = Annotated[list[Words] | None, BeforeValidator(_allows_something)]


_SECRET: Final = re.compile("(key|password|secret|token)$", re.IGNORECASE)
"""How the name of what is a secret in a URL's query ends."""


class ConfigurationMistake(Exception):
    """The file cannot be used; the message is one line that names the file and the place."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ServerConfiguration(_Part):
    """One server: how to reach it, and what an agent may use of it."""

    name: Name
    command: list[Words] | None = Field(default=None, min_length=1)
    """Starts the server over stdio."""
    url: str | None = None
    token_variable: Variable | None = None
    """The environment variable with the bearer token for `url`."""
    trust_hints: bool = True
    """Whether what the server says of its tools decides which are called without asking."""
    tools: Tools = None
    """The tools that are allowed, by the server's own names; all, if left out."""

    @field_validator("url")
    @classmethod
    def _usable(cls, value: str | None) -> str | None:
        if value is None:
            return value
        parts = http_url(value, "https://shop.example/mcp")
        named = parse_qsl(parts.query, keep_blank_values=True)
        if parts.username or parts.password or any(_SECRET.search(name) for name, _ in named):
            raise ValueError("must hold no user, password or key; use token_variable")
        return value

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("must have either a command or a url")
        if self.token_variable is not None and self.url is None:
            raise ValueError("token_variable is for a url")
        return self


class AgentConfiguration(_Part):
    """One agent."""

    id: Name
    system_prompt: str = ""
    """What the model is told first."""
    tools: Tools = None
    """The tools that are allowed, whichever server's; all, if left out."""
    servers: list[ServerConfiguration] = Field(default_factory=list[ServerConfiguration])
    """None here means the servers that the host has without the file."""

    @model_validator(mode="after")
    def _told_apart(self) -> Self:
        _refuse_twice("servers", [server.name for server in self.servers])
        return self


class _File(_Part):
    agents: list[AgentConfiguration] = Field(min_length=1)

    @model_validator(mode="after")
    def _told_apart(self) -> Self:
        _refuse_twice("agents", [agent.id for agent in self.agents])
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
            f"{path}: there is no agent {agent_id[:60]!r}; the agents are: {', '.join(agents)}"
        )
    return agents[agent_id]


class _Loader(yaml.SafeLoader):
    """YAML in which nothing is said twice, and which is no longer when it is read than in the file.

    What a file allows is not to hang on which of two lines wins, and aliases in aliases grow
    without end.
    """

    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise _refused("& and * are not for this file: write it out", event)
        if self._depth > DEPTH:
            raise _refused("it is nested too deeply", event)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        if isinstance(node, yaml.ScalarNode) and _NO_TEXT.search(node.value):
            raise _refused("it holds half a character, or one that no text has", event)
        return node

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        names: set[str] = set()
        for key, _ in node.value:
            name = str(key.value)  # Of anything but text: it is refused later.
            if name in names:
                raise _refused(f"{name[:_SHOWN]!r} stands twice", key)
            names.add(name)
        return node

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        if len(node.value) > DIGITS:
            raise _refused("a number is too long", node)
        return super().construct_yaml_int(node)


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)


_NO_TEXT: Final = re.compile("[\0\ud800-\udfff]")


def _refused(problem: str, at: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=at.start_mark)


def _read(path: Path) -> _File:
    try:
        with path.open("rb") as file:
            text = file.read(MAX_FILE + 1)
        if len(text) > MAX_FILE:
            raise ConfigurationMistake(f"{path}: is too long: more than {MAX_FILE:,} bytes")
        content: Any = yaml.load(text, _Loader)  # noqa: S506 - it is a safe one
    except OSError as error:
        raise ConfigurationMistake(f"{path}: cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError) as error:
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
    "bool_type": "must be true or false",
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

_NO_SECRETS: Final = ("id", "name", "tools", "trust_hints")
"""Of which a wrong value is shown. A secret may stand where none belongs: in a URL, in a command,
or where only the name of its variable does."""


def _in_words(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    place = "".join(
        f"[{part}]" if isinstance(part, int) else f".{one_line(part, _SHOWN)}"
        for part in first["loc"]
    ).lstrip(".")
    place = printable(place, lines=False)
    if place.endswith("token_variable"):
        return f"{place}: must be the name of an environment variable, such as SHOP_TOKEN"
    words = _WORDS.get(first["type"]) or first["msg"].removeprefix("Value error, ")
    value = first["input"]
    known = first["type"] != "extra_forbidden" and place.endswith(_NO_SECRETS)
    if known and isinstance(value, str | int | float):
        words += f", not {str(value)[:_SHOWN]!r}"
    return f"{place}: {words}" if place else words


def _refuse_twice(what: str, names: list[str]) -> None:
    for name, times in Counter(names).items():
        if times > 1:
            raise ValueError(f"{what} must have different names, and {name!r} is there twice")


ANY_AGENT: Final = AgentConfiguration(id="any")
"""An agent that may use whatever the servers have."""
