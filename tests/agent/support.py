"""An agent with a scripted model and the shop, and everything it told its host."""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from mcp import Client

from banking_server.agent import (
    Agent,
    Bounds,
    CallPolicy,
    Endpoint,
    ModelSettings,
    Note,
    OfferedTool,
    Run,
    Toolbox,
)

from ..kit.model import Script, ScriptedModel, scripted_model
from .shop import Calls, shop


def settings(url: str, **more: Any) -> ModelSettings:
    return ModelSettings(**{"url": url, "name": "scripted", "tools": "prompt"} | more)


def not_called(run: Run) -> list[str]:
    return [entry.text for entry in run.transcript if isinstance(entry, Note)]


class Consent:
    """A host that consents, and can also be asked about a call whose effect is unknown."""

    def __init__(self) -> None:
        self.calls: Calls = []
        self.again = 0

    async def allows(self, tool: OfferedTool, arguments: dict[str, Any], again: bool) -> bool:
        self.calls.append((tool.name, arguments))
        self.again += again
        return True


BOUNDS, CONSENTS = Bounds(), Consent()


@dataclass
class Scene:
    """One agent at work."""

    model: ScriptedModel
    agent: Agent
    calls: Calls
    shown: list[str]

    @property
    def called(self) -> list[str]:
        """The tools whose calls reached the server."""
        return [tool for tool, _ in self.calls]

    @property
    def told(self) -> list[str]:
        """The last message of each request to the model."""
        return [str(one["messages"][-1]["content"]) for one in self.model.requests]


@asynccontextmanager
async def scene(
    script: Script,
    *,
    bounds: Bounds = BOUNDS,
    consent: CallPolicy | None = CONSENTS,
    trust: bool = True,
    allowed: Collection[str] | None = None,
    stream: bool = False,
    **more: Any,
) -> AsyncIterator[Scene]:
    """Connect a scripted model with the shop, in memory. `more` are settings of the model.

    What the shop says of its tools counts if `trust` is set. The model is offered the `allowed`
    tools.
    """
    server, calls = shop()
    calls.clear()
    with scripted_model(script) as model:
        async with (
            Endpoint(settings(model.url, **more)) as endpoint,
            Client(server) as client,
        ):
            trusted = ["shop"] if trust else ()
            toolbox = await Toolbox.gather({"shop": client}, trusted=trusted, allowed=allowed)
            shown: list[str] = []
            on_text = shown.append if stream else None
            agent = Agent(endpoint, toolbox, bounds=bounds, consent=consent, on_text=on_text)
            yield Scene(model, agent, calls, shown)
