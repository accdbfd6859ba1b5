"""Each tool call: its caller, time and chain, its audit event, and its result if it fails."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypeVar

import anyio
from mcp import MCPError
from mcp.server import MCPServer, ServerRequestContext
from mcp.server.apps import client_supports_apps
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.mcpserver import Context, Elicit
from mcp.types import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    CallToolResult,
    GetPromptResult,
    InputRequiredResult,
    Tool,
)
from pydantic import BaseModel

from banking_server.bank.audit import Call, record
from banking_server.bank.rules import excerpt
from banking_server.bank.storage import Bank
from banking_server.tools.asking import can_ask
from banking_server.tools.declaration import BankTool
from banking_server.tools.prompts import PROMPT_MARK, prompts
from banking_server.tools.results import refuse, temporarily_unavailable
from banking_server.tools.scopes import (
    READ_SCOPE,
    TRANSFER_SCOPE,
    ScopeMissing,
    check_scope,
)
from banking_server.tools.sdk import RegisteredTool, find_tool
from tool_chaining.content import hidden_from_model
from tool_chaining.provenance import read_provenance

UNKNOWN_TOOL: Final = "(unknown tool)"
"""The tool name in the audit trail for a call of a tool that does not exist."""

QUESTION_SECONDS: Final = 600
"""Seconds that a call may wait for the customer's answers."""

SESSION_HEADER: Final = "Mcp-Session-Id"
"""The header of a request of 2025-11-25 that names its session."""

SCOPE_MISSING: Final = "scope_missing"
"""The outcome of a call that is refused because its token lacks a scope."""

Infer = Callable[[str, str], Awaitable[str]]
"""Asks a language model: takes instructions and a question, returns its text. Raises
`NoValue` with the reason."""


@dataclass(frozen=True)
class App:
    """The state of the running server, which all calls share."""

    bank: Bank
    clock: Callable[[], datetime]
    """Returns the current time in UTC. It is read for each request to the bank."""
    customer: str | None
    """Over stdio, the customer who started the server. None over HTTP: there the verified token
    says who is calling."""
    infer: Infer | None = None
    """The server's own language model, if it has one."""
    transfers: Counter[str] = field(default_factory=Counter)
    """The running calls with the scope for transfers, by session. An answer to their question names
    no tool, so every request of such a session needs the scope while they run."""

    @contextmanager
    def transfer_in(self, session: str | None) -> Iterator[None]:
        """Count a call with the scope for transfers in a session, if there is one."""
        if session is None:
            yield
            return
        self.transfers[session] += 1
        try:
            yield
        finally:
            self.transfers[session] -= 1
            if not self.transfers[session]:
                del self.transfers[session]

    def caller(self) -> str:
        """Return the customer who is calling; never from a call's arguments.

        Raises `MCPError` if there is neither a token nor a configured customer.
        """
        token = get_access_token()
        customer = self.customer if token is None else token.subject
        if not customer:
            raise MCPError(INVALID_REQUEST, "This call needs a bearer token.")
        return customer


@dataclass(frozen=True)
class _Current:
    bank: Bank
    call: Call
    clock: Callable[[], datetime]
    is_step: bool
    """Whether it is made inside another call."""


_Form = TypeVar("_Form", bound=BaseModel)

_current: ContextVar[_Current] = ContextVar("bank_call")


def current_call() -> tuple[Bank, Call]:
    """Return the bank and the current call, with the current time.

    The time is read again because the customer may have taken minutes to answer a question.
    """
    current = _current.get()
    current.call.at = current.clock()
    return current.bank, current.call


def shows_view(ctx: Context[Any, Any]) -> bool:
    """Return whether the client shows a view of the current call; never of a step."""
    return not _current.get().is_step and client_supports_apps(ctx)


def asks_by_form(ctx: Context[Any, Any]) -> bool:
    """Return whether the customer is asked by a form. If there is a view, they answer there."""
    return can_ask(ctx) and not shows_view(ctx)


def elicit(words: str, form: type[_Form]) -> Elicit[_Form]:
    """Return a question to the customer of the current call.

    Raises `MCPError` in a step of `multiplex_tools`, which waits for no answer.
    """
    if _current.get().is_step:
        raise MCPError(
            INVALID_REQUEST, "It has a question for the customer, so call it alone, outside a plan."
        )
    return Elicit(words, form)


@contextmanager
def serving(app: App, tool: str, meta: object) -> Iterator[tuple[Bank, Call]]:
    """Set the current call to a request for `tool`. `meta` is the `_meta` of the request."""
    provenance = read_provenance(meta)
    call = Call(
        customer_id=app.caller(),
        tool=tool,
        at=app.clock(),
        chain_id=provenance.chain_id if provenance else None,
        chain_level=provenance.level if provenance else None,
        chain_previous_tool=provenance.previous_tool if provenance else None,
    )
    mark = _current.set(_Current(app.bank, call, app.clock, is_step=_current.get(None) is not None))
    try:
        yield app.bank, call
    finally:
        _current.reset(mark)


class BankServer(MCPServer[App]):
    """Serves each `tools/call` for its caller, and makes sure that its result gets audited.

    The bank writes the event together with the changes of the call. This class writes the events
    of calls that never reached the bank: a missing scope, refused arguments, an unknown tool, a
    failure. A call that ends with a question to the customer has no event: the call that brings the
    answer has one. So a question that nobody answers leaves none.
    """

    def __init__(self, name: str, *, tools: Sequence[BankTool], **options: Any) -> None:
        super().__init__(name, tools=list(tools), **options)
        self._listed: list[Tool] = []

    async def list_tools(self) -> list[Tool]:
        """Return the tools. The list is made once, since it does not change.

        The check of directives reads it for each directive.
        """
        if not self._listed:
            self._listed = await super().list_tools()
        return [*self._listed]

    def _tool_input_schema(self, name: str) -> dict[str, Any] | None:
        """Return no schema for the check of `Mcp-Param-…` headers, which no bank tool has.

        The SDK would otherwise search the whole schema for them on each call.
        """
        return None

    async def get_prompt(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        context: Context[App, Any] | None = None,
    ) -> GetPromptResult | InputRequiredResult:
        """Raise `MCPError` for any name: there are no prompts."""
        raise MCPError(INVALID_PARAMS, f"Unknown prompt: {excerpt(name)}")

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[App, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Run one call for its caller and record its result. If that fails, return a failure.

        A call outside a request has no caller; the bank's tools refuse it.
        """
        if context is None:
            return await super().call_tool(name, arguments)
        tool, request = self._find(name, context), context.request_context
        called = UNKNOWN_TOOL if tool is None else tool.name
        with serving(request.lifespan_context, called, request.meta) as (bank, call):
            is_single = not _current.get().is_step and call.chain_id is None
            try:
                if tool is None:
                    check_scope(READ_SCOPE, UNKNOWN_TOOL)
                    result: CallToolResult | InputRequiredResult = refuse(
                        "unknown_tool", None, f"Unknown tool: {excerpt(name)}"
                    )
                elif is_single and (argument := next(iter(prompts(arguments)), None)) is not None:
                    result = refuse("invalid_arguments", excerpt(argument), _misplaced(argument))
                else:
                    result = await self._run(tool, arguments, context, request)
            except MCPError as error:
                # A client of 2025-11-25 that cannot show the question answers with an error.
                outcome = SCOPE_MISSING if isinstance(error, ScopeMissing) else "failed"
                failure = await _record(bank, call, outcome)
                if failure is not None:
                    return failure
                raise
            if not isinstance(result, CallToolResult):
                return result  # A question: the call with the answer will be recorded.
            outcome = _outcome(result)
            if outcome == "busy":
                # Nothing was done. An audit event would make the caller wait again.
                return result
            return await _record(bank, call, outcome) or result

    async def _run(
        self,
        tool: RegisteredTool,
        arguments: dict[str, Any],
        context: Context[App, Any],
        request: ServerRequestContext[App, Any],
    ) -> CallToolResult | InputRequiredResult:
        """Run the tool. If it can ask the customer while it runs, it waits `QUESTION_SECONDS`."""
        result: CallToolResult | InputRequiredResult
        if not request.session.can_send_request:
            # A question ends this request; the next one has the answer.
            result = await tool.run(arguments, context, convert_result=True)
            return result
        session = None
        if isinstance(tool, BankTool) and tool.scope == TRANSFER_SCOPE and request.request:
            session = request.request.headers.get(SESSION_HEADER)
        app = request.lifespan_context
        with app.transfer_in(session), anyio.move_on_after(QUESTION_SECONDS):
            result = await tool.run(arguments, context, convert_result=True)
            return result
        return refuse("invalid_answer", None, _NOBODY_ANSWERED)

    def _find(self, name: str, context: Context[App, Any]) -> RegisteredTool | None:
        """Return the caller's tool with this name. Tools for views need a client with views.

        Only the host of a view may call them, so a step of `multiplex_tools` may not.
        """
        tool = find_tool(self, name)
        if tool is None or not hidden_from_model(tool.meta):
            return tool
        return tool if not _is_step() and client_supports_apps(context) else None


def _is_step() -> bool:
    """Return whether the call is a step of `multiplex_tools`."""
    return _current.get(None) is not None


_NOBODY_ANSWERED: Final = (
    f"Nobody answered the bank's question within {QUESTION_SECONDS // 60} minutes. Make the same "
    "call again: nothing is done twice."
)


def _misplaced(argument: str) -> str:
    return (
        f"{excerpt(argument)}: is a prompt for a language model ({PROMPT_MARK}), but only "
        "multiplex_tools asks a model. Write the value itself, or make this call a step of "
        "multiplex_tools, after the step whose result it depends on."
    )


async def _record(bank: Bank, call: Call, outcome: str) -> CallToolResult | None:
    """Record a call that the bank has not recorded; return a failure if that is not possible."""
    try:
        if not call.recorded:
            await record(bank, call, outcome)
    except Exception as error:
        if outcome != "unavailable":  # Otherwise the bank's failure is logged already.
            return temporarily_unavailable(call.tool, error)
    return None


async def record_scope_missing(app: App, tool: str) -> None:
    """Record a call of `tool` that was refused before MCP read it."""
    with serving(app, tool, None) as (bank, call):
        await record(bank, call, SCOPE_MISSING)


def _outcome(result: CallToolResult) -> str:
    status = (result.structured_content or {}).get("status")
    return status if isinstance(status, str) else "error" if result.is_error else "ok"
