"""Tool calls in plain text, for any model that can write JSON.

The model reads its tools in the prompt, as in the simple chatbot of the MCP Python SDK, and asks
for a call with a JSON object and nothing else. There are two forms of it:

    {"tool": "list_accounts", "arguments": {}}
    {"response": "I'll look.", "mcp": {"tool": "bank", "method": "list_accounts", "params": {}}}

The result goes into the next prompt, and the model is asked again, until a reply has no call: the
recursive agent of LangSwarm. `{"response": "..."}` without `mcp` is the answer, and so is any other
text. Two mistakes go back to the model, once each: a name that no server lists, and a mark of a
call inside something else. Nothing else is guessed.
"""

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from banking_server.client.tool_list import type_in_words
from tool_chaining import Tool
from tool_chaining.content import member
from tool_chaining.errors import ForPeople
from tool_chaining.text import one_line

if TYPE_CHECKING:
    from pydantic_ai import AgentRunResult, ModelMessage
    from pydantic_ai.models import Model

MAX_REPLIES: Final = 12
"""The most replies of the model to one request."""

MAX_PROMPT: Final = 100_000
"""The most characters that the tools take in the prompt, and in a line of it a hundredth."""

_PROMPT: Final = """\
You are a helpful assistant with access to these tools:

{tools}

Choose the appropriate tool for the user's request. To call it, reply with ONLY a JSON object:
{"tool": "tool-name", "arguments": {"text-argument": "words", "number-argument": 25}}
Make ONE call, and wait: its result comes in the next message, and the next call may need it. When \
all that the user asked for is done, or cannot be done, reply with ONLY this JSON object:
{"response": "what was done, and what was not, in a sentence for the user"}
Use only the tools above. Never invent an id or a date, and leave out optional arguments."""

_NEXT: Final = "Reply with the next call that it needs or, if nothing is left to do, the response."

_FENCE: Final = re.compile(r"\s*```\w*\n(.*)\n\s*```\s*", re.DOTALL)
_MARK: Final = re.compile(r'"(?:tool|mcp)"\s*:')


@dataclass(frozen=True)
class PromptForm:
    """A model, the tools that it is told of, and the function that makes its calls."""

    model: "Model"
    tools: Mapping[str, Tool]
    call: Callable[[str, dict[str, Any]], Awaitable[str]]
    instructions: Sequence[str] = ()

    async def run(
        self, request: str, *, message_history: "Sequence[ModelMessage]" = ()
    ) -> "AgentRunResult[str]":
        """Ask the model until a reply has no call. Raises what the model and `describe` raise."""
        from pydantic_ai import Agent, UsageLimitExceeded

        agent = Agent(self.model, instructions=[*self.instructions, describe(self.tools)])
        said, told_of = request, set[str]()
        then = f"\n\nThe user's request was: {request}\n{_NEXT}"
        for _ in range(MAX_REPLIES):
            ended = await agent.run(said, message_history=message_history)
            message_history = ended.all_messages()
            match read(ended.output):
                case (name, arguments) if name in self.tools:
                    result = await self.call(name, arguments)
                    said = f"Result of {name}:\n{result}{then}"
                    continue
                case (name, _):
                    mistake, answer = "there is no such tool", ended.output
                    if mistake in told_of:
                        again = f"{one_line(name, 60)}, which no server lists"
                        raise ForPeople(f"The model asked again for {again}.")
                case str(answer):
                    mistake = "a call is ONE JSON object, alone" if _MARK.search(answer) else ""
            if not mistake or mistake in told_of:
                return replace(ended, output=answer)
            told_of.add(mistake)
            said = f"No call was made: {mistake}. Tools: {', '.join(self.tools)}.{then}"
        raise UsageLimitExceeded(f"The model has replied {MAX_REPLIES} times.")


def read(reply: str) -> str | tuple[str, dict[str, Any]]:
    """Return what a reply means: a tool's name and its arguments, or the answer."""
    fenced = _FENCE.fullmatch(reply)
    try:
        value = json.loads(fenced[1] if fenced else reply)
    except (ValueError, RecursionError):
        return reply
    mcp = member(value, "mcp")
    of_one, of_other = (value, "tool", "arguments"), (mcp, "method", "params")
    for holder, name, arguments in (of_one, of_other):
        tool, given = member(holder, name), member(holder, arguments)
        if isinstance(tool, str) and isinstance(given, dict | None):
            return tool, given or {}
    response = member(value, "response")
    return response if isinstance(response, str) and mcp is None else reply


def describe(tools: Mapping[str, Tool]) -> str:
    """Return the prompt. Raises ForPeople if it would be too long."""
    words = "\n\n".join(_in_words(name, tool) for name, tool in tools.items())
    if len(words) > MAX_PROMPT:
        raise ForPeople(
            f"The descriptions of the tools have {len(words):,} characters, and at most "
            f"{MAX_PROMPT:,} fit into the prompt: choose fewer tools with --config."
        )
    return _PROMPT.replace("{tools}", words)


def _in_words(name: str, tool: Tool) -> str:
    """Describe a tool and its arguments, but nothing that a schema refers to."""
    schema, lines = tool.input_schema, list[str]()
    properties, required = member(schema, "properties"), member(schema, "required")
    for argument, given in (properties if isinstance(properties, dict) else {}).items():
        needed = ", required" if isinstance(required, list) and argument in required else ""
        about = member(given, "description") or "no description"
        lines.append(f"- {argument} ({type_in_words(given, schema)}{needed}): {about}")
    about = tool.wire.get("description") or tool.title or "none"
    lines = [f"Tool: {name}", f"Description: {about}", "Arguments:", *(lines or ["none"])]
    return "\n".join(one_line(line, MAX_PROMPT // 100) for line in lines)
