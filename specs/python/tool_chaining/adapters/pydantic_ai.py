"""Pydantic AI: a toolset whose calls follow their chains, and are never repeated unasked."""

import json
from collections.abc import Awaitable
from dataclasses import replace
from typing import Any, Final

from pydantic import TypeAdapter

from tool_chaining import ChainResult, Follower, FollowUpStatus, NobodyToAsk, Proposal, Tool
from tool_chaining.content import Json, content_of, for_user_alone, in_text
from tool_chaining.tools import read_list

try:
    from pydantic_ai import RunContext
    from pydantic_ai.tools import ToolDefinition
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
except ImportError as error:
    needs = f"{__name__} needs Pydantic AI: pip install 'pydantic-ai-slim>=2.60,<3' ({error})"
    raise ImportError(needs) from None

WITHHELD: Final = "[shown to the user, and not to you]"  # Instead of what is for the user alone.
_OBJECT: Final[Any] = TypeAdapter(dict[str, Any]).validator


class ChainingToolset(AbstractToolset[Any]):
    """The tools of one server, each called through a `Follower`.

        toolset = ChainingToolset(Follower(client, consent=policy))
        agent = Agent("openai-chat:gpt-5-mini", toolsets=[toolset])

    The model gets the text of the whole chain, without content for the user alone: show that with
    the follower's `on_step`. **No outcome of a call is a `ModelRetry`**, which would tell the model
    to try again: neither an error of the tool, nor a result that never came.

    With `ask_first`, the follower's consent policy also decides on the model's own calls, each a
    `Proposal` with level 1. Otherwise the framework does, as in `toolset.approval_required()`.
    """

    id = None

    def __init__(self, follower: Follower, *, ask_first: bool = False) -> None:
        self.follower, self._ask_first = follower, ask_first
        self._tools: dict[str, Tool] | None = None
        self._in_doubt: set[str] = set()  # A call may have taken effect without a result.

    async def list_tools(self) -> dict[str, Tool]:
        """Return the tools that the model may see, by name. Raises what reading the list raises."""
        listed = await read_list(self.follower.client, self.follower.tools.note)
        if listed.failure is not None and not listed.tools:
            raise listed.failure
        self._tools = {name: tool for name, tool in listed.tools.items() if not tool.hidden}
        return self._tools

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """Return the tools for the framework. The list is read once in a run."""
        tools = self._tools if self._tools is not None and ctx.run_step > 1 else None
        # Retried is only what was not sent, since its arguments are no JSON object.
        rest: Any = {"max_retries": ctx.max_retries, "args_validator": _OBJECT}
        return {
            name: ToolsetTool(toolset=self, tool_def=_defined(tool), **rest)
            for name, tool in (tools or await self.list_tools()).items()
        }

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> str:
        """Make a call of the model, follow its chain, and return its text for the model."""
        if self._ask_first and (reason := await self._refused(name, tool_args)):
            return f"{name} was not called: {reason}. Do not call it again for this request."
        follower = replace(self.follower, on_end=lambda ended: self._note(name, ended))
        chain = await follower.call_tool(name, tool_args)
        if chain.steps:
            words = for_model(chain.merged_json())
            return f"{name} failed:\n{words}" if chain.steps[0].is_error else words
        unknown = "It is not known whether the call took effect: do not make it again"
        return f"No result came: {chain.detail}. {unknown} unless you know that it did not."

    async def _refused(self, name: str, arguments: dict[str, Any]) -> str | None:
        """Ask the host for consent; return why the call is not made, or None if it is."""
        policy = self.follower.consent
        if policy is None:
            return "nobody can be asked to allow it"
        ask = policy.allows_again if name in self._in_doubt else policy.allows
        try:
            agreed = await ask(Proposal((self._tools or {})[name], arguments, 1, ""))
        except NobodyToAsk:
            return "nobody can be asked to allow it"
        return None if agreed is True else "the user did not agree"

    def _note(self, name: str, chain: ChainResult) -> Awaitable[None] | None:
        """Remember which tools are in doubt, after a cancelled chain too."""
        self._in_doubt -= {step.tool for step in chain.steps if not step.is_error}
        lost = {one.tool for one in chain.follow_ups if one.status is FollowUpStatus.UNKNOWN}
        self._in_doubt |= lost if chain.steps else {name}
        return self.follower.on_end(chain) if self.follower.on_end is not None else None


def for_model(result: Json) -> str:
    """Return a result as text for a model. Texts for the user alone are withheld everywhere."""
    content, structured = content_of(result), result.get("structuredContent")
    secrets = [in_text(item) for item in content if for_user_alone(item)]
    texts = [WITHHELD if for_user_alone(item) else in_text(item) for item in content]
    if structured is not None and set(texts) <= {WITHHELD}:
        texts.append(json.dumps(structured, ensure_ascii=False))
    words = "\n".join(texts) or "[no content]"
    for secret in filter(str.strip, secrets):
        for written in (secret, json.dumps(secret, ensure_ascii=False)[1:-1]):
            words = words.replace(written, WITHHELD)
    return words


def _defined(tool: Tool) -> ToolDefinition:
    schema, about = tool.input_schema, tool.wire.get("description")
    return ToolDefinition(
        name=tool.name,
        description=about if isinstance(about, str) else tool.title,
        parameters_json_schema={"type": "object", **(schema if isinstance(schema, dict) else {})},
        metadata={"annotations": dict(tool.hints), "meta": tool.wire.get("_meta")},
        sequential=True,  # A call may depend on the one before it, and each asks for consent.
    )
