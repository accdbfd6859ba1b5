"""This project's client under test: the example of the suite, and the rest of the context.

The user of a run can have a rule of their own, and a host whose model makes the first call.
"""

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tool_chaining import ChainResult, Follower, Outcome, Proposal
from tool_chaining.rules import Rule, Rules

sys.path.append(str(Path(__file__).parents[2] / "specs" / "examples"))
import client_under_test as example


def agrees(context: Mapping[str, Any], tool: str) -> bool:
    """Return whether the user of this context agrees to a call, and the host does not deny it.

    Of a list of answers it is one after the other; the last one holds for all further questions.
    """
    if tool in context.get("deniedTools", []):
        return False
    answer = context.get("consentByTool", {}).get(tool, context.get("consent"))
    if isinstance(answer, list):
        answer = answer.pop(0) if len(answer) > 1 else answer[0]
    return bool(answer == "grant")


def rules_of(context: Mapping[str, Any]) -> Rules | None:
    """Return the user's rule of this context, if it has one."""
    step = context.get("addedStep")
    if step is None:
        return None
    return Rules((Rule(1, step["after"], step["tool"], arguments=step["arguments"]),))


class User(example.User):
    """The user of one run, with the whole context."""

    def __init__(self, context: dict[str, Any]) -> None:
        super().__init__(context)
        self.context = context


class Host(Follower):
    """Follows the user's rule, too, and asks before the first call of a model."""

    consent: User

    def __post_init__(self) -> None:
        self.rules = rules_of(self.consent.context)
        super().__post_init__()

    async def call_tool(self, name: str, arguments: Any = None, **_: Any) -> Any:
        """Make a first call, if its model may."""
        if self.consent.context.get("firstCallBy") == "model":
            tool = await self.tools.read(self.client, name)
            assert tool is not None
            if not await self.consent.allows(Proposal(tool, arguments, 1, "")):
                return self.on_end(ChainResult("", Outcome.DECLINED, "", ()))
        return await self.begin(name, arguments)

    async def begin(self, name: str, arguments: Any) -> Any:
        """Make a first call, and follow its chain."""
        return await super().call_tool(name, arguments)


example.User, example.Follower = User, Host


def run_once(url: str, environment: Mapping[str, str]) -> str:
    """Make one run, as the variables say it, and return what is printed."""
    context = json.loads(environment["MCP_CONFORMANCE_CONTEXT"])
    revision = environment["MCP_CONFORMANCE_PROTOCOL_VERSION"]
    return json.dumps(asyncio.run(example.follow(url, revision, context)))
