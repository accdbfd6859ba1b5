"""The ways to chain tools."""

from enum import StrEnum
from typing import Any

from mcp import Client
from mcp.types import CallToolResult
from pydantic_ai.models import Model

from banking_server.client.agent.conversation import begin
from banking_server.client.agent.settings import AgentConfiguration, ModelSettings
from tool_chaining import META_KEY, Follower
from tool_chaining.content import for_user, on_the_wire, without_next_step

from ..kit.words import PREPARE
from .person import Person


class Way(StrEnum):
    """How the next tool is found."""

    NEXT_TOOL = "nextTool"
    """The first call is given by hand; the chaining client follows directives. No model."""
    AGENT = "agent"
    """The agent of `chat`, with the endpoint's own tool calls; directives are followed."""
    PROMPT_FORM = "prompt form"
    """The agent of `chat`, with tools and calls as text; directives are followed."""
    TEXT_ONLY = "text only"
    """The prompt form where no directive is followed: the model reads the server's words for
    models, which name the next call, so this tests copying more than judgement."""
    USER_TEXT_ONLY = "user's text only"
    """The same, and the model reads only what the user is told."""


class TextOnly(Client):
    """A client as if it had never heard of the extension, nor of audiences: the model sees all."""

    for_user_only = False

    async def call_tool(self, *args: Any, **kwargs: Any) -> CallToolResult:
        """Call the tool, and lose the directive, and all marks of the content."""
        result = await super().call_tool(*args, **kwargs)
        content = [
            block.model_copy(update={"meta": None, "annotations": None})
            for block in result.content
            if not self.for_user_only or for_user(on_the_wire(block))
        ]
        kept = {name: value for name, value in (result.meta or {}).items() if name != META_KEY}
        structured = result.structured_content
        if self.for_user_only:
            structured = without_next_step(structured)
        changed = {"content": content, "structured_content": structured, "meta": kept or None}
        return result.model_copy(update=changed)


class UserTextOnly(TextOnly):
    """The same, and what the server says to models is lost too."""

    for_user_only = True


CLIENTS = {Way.TEXT_ONLY: TextOnly, Way.USER_TEXT_ONLY: UserTextOnly}
"""Of the ways in which no directive is followed."""


async def take(way: Way, client: Client, person: Person, model: Model) -> dict[str, Any]:
    """Take one way to what the customer wants; return how it ended, and the answer."""
    case = person.case
    if way is Way.NEXT_TOOL:
        accounts = {"fromAccountId": case.source, "toAccountId": case.target}
        follower = Follower(client, consent=person, on_step=person.show_step)
        chain = await follower.call_tool(PREPARE, {**accounts, "amount": case.dollars})
        return {"ended": chain.detail or chain.outcome, "answer": None}
    form: Any = "native" if way is Way.AGENT else "prompt"
    settings = ModelSettings(url="http://localhost/v1", name=model.model_name, tools=form)
    narrate: Any = lambda: person  # noqa: E731 - it shows and asks as a Narrator does
    talk = await begin(settings, model, {"bank": client}, AgentConfiguration(), narrate)
    answered, text = await talk.ask(case.words)
    return {"ended": "answered", "answer": text} if answered else {"ended": text, "answer": None}
