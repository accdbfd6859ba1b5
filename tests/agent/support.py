"""An agent with a scripted model and the shop, and everything it told its host."""

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any

from mcp import Client

from banking_server.agent import (
    Agent,
    Bounds,
    CallPolicy,
    Endpoint,
    Entry,
    ModelSettings,
    OfferedTool,
    Toolbox,
)
from banking_server.chaining import CLIENT_EXTENSION

from ..kit.model import Script, ScriptedModel, scripted_model
from .shop_server import Log, fresh_shop


def settings(url: str, **more: Any) -> ModelSettings:
    return ModelSettings(**{"url": url, "name": "scripted", "tools": "prompt"} | more)


class Consent:
    """A host that is asked for its consent."""

    def __init__(self, answer: bool) -> None:
        self.answer = answer
        self.calls: list[tuple[str, dict[str, Any]]] = []

    async def allows(self, tool: OfferedTool, arguments: dict[str, Any]) -> bool:
        self.calls.append((tool.name, arguments))
        return self.answer


class Scene:
    """One agent at work."""

    def __init__(self, model: ScriptedModel, agent: Agent, log: Log) -> None:
        self.model = model
        self.agent = agent
        self.log = log
        self.entries: list[Entry] = []
        self.shown: list[str] = []

    @property
    def called(self) -> list[str]:
        """The tools whose calls reached the server."""
        return [tool for tool, _ in self.log.calls]


@asynccontextmanager
async def scene(
    script: Script,
    *,
    bounds: Mapping[str, Any] | None = None,
    consent: CallPolicy | None = None,
    declare: bool = True,
    trust: bool = True,
    kept_back: Collection[str] = (),
    stream: bool = False,
    **more: Any,
) -> AsyncIterator[Scene]:
    """Connect a scripted model with the shop, in memory. `more` are settings of the model.

    The client declares the extension if `declare` is set. What the shop says of its tools counts
    if `trust` is set, and the tools that are `kept_back` are not offered to the model.
    """
    shop, log = fresh_shop()
    with scripted_model(script) as model:
        async with (
            Endpoint(settings(model.url, **more)) as endpoint,
            Client(shop, extensions=[CLIENT_EXTENSION] if declare else None) as client,
        ):
            made: Scene
            toolbox = await Toolbox.gather({"shop": client}, trusted=["shop"] if trust else ())
            offered = [tool for tool in toolbox.tools if tool.name not in kept_back]
            agent = Agent(
                endpoint,
                Toolbox(offered, toolbox.instructions),
                bounds=Bounds(**(bounds or {})),
                consent=consent or Consent(True),
                on_entry=lambda entry: made.entries.append(entry),
                on_text=(lambda piece: made.shown.append(piece)) if stream else None,
            )
            made = Scene(model, agent, log)
            yield made
