"""An agent with a scripted model and the shop, and everything it told its host."""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from mcp import Client

from banking_server.client.agent.endpoint import Endpoint
from banking_server.client.agent.loop import Agent
from banking_server.client.agent.settings import ModelSettings
from banking_server.client.agent.toolbox import OfferedTool, Toolbox
from banking_server.client.agent.transcript import Note, Run

from ..kit.model import Script, ScriptedModel, scripted_model
from .shop import Calls, shop


def not_called(run: Run) -> list[str]:
    return [entry.text for entry in run.transcript if isinstance(entry, Note)]


@dataclass
class Consent:
    """A host that consents, and keeps what it was asked."""

    asked: Calls = field(default_factory=Calls)
    again: int = 0
    """How often it was asked about a call whose effect is unknown."""

    async def allows(self, tool: OfferedTool, arguments: dict[str, Any], again: bool) -> bool:
        self.asked.append((tool.name, arguments))
        self.again += again
        return True


@dataclass
class Scene:
    """One agent at work."""

    model: ScriptedModel
    agent: Agent
    consent: Consent
    calls: Calls

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
    can_ask: bool = True,
    trust: bool = True,
    allowed: Collection[str] | None = None,
    **more: Any,
) -> AsyncIterator[Scene]:
    """Connect a scripted model with the shop, in memory. `more` are settings of the model.

    What the shop says of its tools counts if `trust` is set. The model is offered the `allowed`
    tools. Unless `can_ask` is set, nobody can be asked for consent.
    """
    server, calls = shop()
    calls.clear()
    with scripted_model(script) as model:
        settings = ModelSettings(url=model.url, name="scripted", **more)
        async with Endpoint(settings) as endpoint, Client(server) as client:
            trusted = ["shop"] if trust else ()
            toolbox = await Toolbox.gather({"shop": client}, trusted=trusted, allowed=allowed)
            consent = Consent()
            asked = consent if can_ask else None
            agent = Agent(endpoint, toolbox, consent=asked)
            yield Scene(model, agent, consent, calls)
