"""The tool `multiplex_tools`: runs its steps, and waits for the answers of the client's model."""

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, cast

from mcp import MCPError
from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, InputRequiredResult, TextContent, Tool
from pydantic import BaseModel, Field

from banking_server.tools.asking import can_ask_in_results
from banking_server.tools.calling import App
from banking_server.tools.declaration import SECRET_ARGUMENTS, bank_tool
from banking_server.tools.multiplex.inference import (
    INSTRUCTIONS,
    answer_text,
    ask_now,
    parse_answer,
    question,
    sampling_request,
)
from banking_server.tools.multiplex.references import earlier_results, value_of
from banking_server.tools.multiplex.request import (
    MAX_STEPS,
    Condition,
    StepId,
    StepRequest,
    mistakes,
)
from banking_server.tools.prompts import PROMPT_MARK, prompts
from banking_server.tools.results import Structured, refuse, text, with_message
from banking_server.tools.scopes import READ_SCOPE
from banking_server.tools.sdk import can_send_request, inner_context
from tool_chaining import META_KEY
from tool_chaining.content import for_user_alone, hidden_from_model, on_the_wire
from tool_chaining.expressions import Data, NoValue
from tool_chaining.values import same


class StepResult(Structured):
    """The status of one step, with the members of a tool result if it was run."""

    id: StepId = Field(title="ID")
    tool: str
    status: Literal["done", "failed", "skipped", "not_run"] = Field(
        description="skipped: its condition was not met. not_run: it needs a missing result."
    )
    message: str | None = Field(default=None, description="Why it failed or was not run.")
    is_error: bool = False
    content: list[dict[str, Any]] | None = None
    structured_content: dict[str, Any] | None = None


class MultiplexOut(Structured):
    """The steps' results, in order."""

    status: Literal["completed", "stopped"] = Field(
        description="completed: every step was tried, even if some failed. stopped: a step's "
        "result named the tool to call next, so the rest was not run."
    )
    results: list[StepResult]


@bank_tool(
    title="Multiplex Tools",
    scope=READ_SCOPE,
    destructive=True,
    idempotent=False,
    moves_money=True,
    names_next_tool=True,
)
async def multiplex_tools(
    tools: Annotated[
        list[StepRequest],
        Field(min_length=1, max_length=MAX_STEPS, description="The requests, in order."),
    ],
    ctx: Context[App, Any],
) -> Annotated[CallToolResult, MultiplexOut] | InputRequiredResult:
    """Call several tools in sequence with one request, and get the list of their results. If an
    argument depends on an earlier result, refer to it with {"jmespath":
    "[0].structuredContent.accounts[1].accountId"}, or describe it for a language model with a
    string like "PROMPT_ARGUMENT: the id of the savings account". A step with `when` runs only if
    an earlier result meets that condition. At most 10 steps, and 20 prompts."""
    listed = await ctx.mcp_server.list_tools()
    known = {tool.name: tool for tool in listed if not hidden_from_model(tool.meta)}
    why = next(mistakes(tools, known), None)
    if why is not None:
        return refuse("refused", "tools", f"{why}. Nothing was run.")
    return await _Steps(tools, known, ctx).run()


class _Progress(BaseModel):
    """The finished steps of a call: its request state, while the client's model is asked."""

    done: list[StepResult] = []
    for_user: list[dict[str, Any]] = []
    """Content of these steps for the user only."""


class _Asks(Exception):
    """The client's model has to answer first; the only argument is the result that asks it."""


class _Steps:
    """The running steps of one call."""

    def __init__(
        self, steps: Sequence[StepRequest], known: dict[str, Tool], ctx: Context[App, Any]
    ) -> None:
        self.steps = steps
        self.known = known
        self.ctx = ctx
        self.progress = (
            # The SDK has verified that this server made the request state.
            _Progress.model_validate_json(ctx.request_state) if ctx.request_state else _Progress()
        )
        self.next_tool: Any = None
        self.earlier = earlier_results([on_the_wire(result) for result in self.progress.done])

    async def run(self) -> CallToolResult | InputRequiredResult:
        """Run the remaining steps; return all results, or the prompts for the client's model."""
        done = self.progress.done
        try:
            while len(done) < len(self.steps) and self.next_tool is None:
                done.append(await self._step(self.steps[len(done)]))
                self.earlier.value.append(on_the_wire(done[-1]))
        except _Asks as asks:
            asked: InputRequiredResult = asks.args[0]
            return asked
        return self._result()

    async def _step(self, step: StepRequest) -> StepResult:
        tool, arguments = step.params.name, step.params.arguments
        try:
            if step.when is not None and not _holds(step.when, self.earlier):
                return _unrun(step, "skipped", "Its condition is not met.")
            lost = [one.id for one in self.progress.done if one.status in ("failed", "not_run")]
            if lost and prompts(arguments):
                words = f"Its prompt needs all earlier results, and {lost[0]!r} has none."
                return _unrun(step, "not_run", words)
            complete = await self._arguments(tool, arguments)
            result = await self.ctx.mcp_server.call_tool(tool, complete, inner_context(self.ctx))
        except NoValue as problem:
            return _unrun(step, "failed", f"{str(problem).rstrip('.')}.")
        except MCPError as error:
            return _unrun(step, "failed", error.message)
        return self._finished(step, cast(CallToolResult, result))

    async def _arguments(self, tool: str, written: Mapping[str, Any]) -> dict[str, Any]:
        """Return a step's arguments with all references and prompts replaced by values."""
        schemas = self.known[tool].input_schema["properties"]
        arguments: dict[str, Any] = {}
        name = ""
        try:
            for name, argument in written.items():
                arguments[name] = value_of(argument, self.earlier)
            history = self._history(_visible(tool, arguments))
            asked = {
                name: question(prompt, name, schemas.get(name, {}), history)
                for name, prompt in prompts(written).items()
            }
            for name in asked:
                answer = await self._answer(name, asked)
                arguments[name] = parse_answer(answer, schemas.get(name, {}))
                if arguments[name] is None:
                    del arguments[name]
        except NoValue as problem:
            raise NoValue(f"arguments.{name}: {problem}") from None
        return arguments

    def _history(self, request: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the requests and results so far, and the request to complete, for a model."""
        history = [
            # A result's text repeats its structured content.
            {
                "request": _visible(step.params.name, step.params.arguments),
                "result": {**result, "content": None},
            }
            for step, result in zip(self.steps, self.earlier.value, strict=False)
        ]
        return [*history, {"request to complete": request}]

    async def _answer(self, name: str, asked: Mapping[str, str]) -> str:
        """Return the answer of the client's model, or of the bank's. Raises `NoValue`."""
        capabilities = self.ctx.client_capabilities
        if capabilities is not None and capabilities.sampling is not None:
            if can_ask_in_results(self.ctx):
                return answer_text(self._responses(asked)[name])
            if can_send_request(self.ctx):
                return await ask_now(self.ctx, asked[name])
        infer = self.ctx.request_context.lifespan_context.infer
        if infer is None:
            raise NoValue(
                f"begins {PROMPT_MARK} and needs a language model. Use a client that offers "
                "sampling, or start the server with BANKING_MODEL_URL and BANKING_MODEL_NAME"
            )
        return await infer(INSTRUCTIONS, asked[name])

    def _responses(self, asked: Mapping[str, str]) -> dict[str, Any]:
        """Return the client's answers to a step's prompts, by the arguments' names.

        Raises `_Asks` if the client has to be asked first (2026-07-28).
        """
        keys = {name: f"{len(self.progress.done)}/{name}" for name in asked}
        responses = self.ctx.input_responses or {}
        if not {*keys.values()} <= {*responses}:
            requests: Any = {keys[name]: sampling_request(words) for name, words in asked.items()}
            state = self.progress.model_dump_json()
            raise _Asks(InputRequiredResult(input_requests=requests, request_state=state))
        return {name: responses[key] for name, key in keys.items()}

    def _finished(self, step: StepRequest, result: CallToolResult) -> StepResult:
        self.next_tool = (result.meta or {}).get(META_KEY)
        content = [on_the_wire(block) for block in result.content]
        # Content for the user only, such as a confirmation code, is kept from the model.
        self.progress.for_user += [item for item in content if for_user_alone(item)]
        structured = result.structured_content
        if structured is not None and any(map(for_user_alone, content[1:])):
            # `results.result` repeats that content in the structured `message`.
            structured = {**structured, "message": content[0]["text"]}
        return StepResult(
            id=step.id,
            tool=step.params.name,
            status="failed" if result.is_error else "done",
            is_error=bool(result.is_error),
            content=[item for item in content if not for_user_alone(item)],
            structured_content=structured,
        )

    def _result(self) -> CallToolResult:
        done = self.progress.done
        why = "An earlier step's result names the tool to call next."
        results = [*done, *(_unrun(step, "not_run", why) for step in self.steps[len(done) :])]
        lines = "\n".join(map(_line, results))
        # The user needs the codes, and some hosts show the user only structured content.
        codes = [item["text"] for item in self.progress.for_user if item["text"] not in lines]
        status: Literal["completed", "stopped"] = "stopped" if self.next_tool else "completed"
        structured = with_message(
            "\n".join([lines, *codes]), MultiplexOut(status=status, results=results)
        )
        for_user = [TextContent.model_validate(block) for block in self.progress.for_user]
        return CallToolResult(
            content=[*for_user, text(json.dumps(structured["results"], ensure_ascii=False))],
            structured_content=structured,
            is_error=any(result.status in ("failed", "not_run") for result in done),
            _meta={META_KEY: self.next_tool} if self.next_tool else None,
        )


def _holds(when: Condition, earlier: Data) -> bool:
    """Return whether a step's condition is met. Raises `NoValue`."""
    try:
        value = earlier.evaluate(when.jmespath)
    except NoValue as problem:
        raise NoValue(f"when: {problem}") from None
    if "exists" in when.model_fields_set:
        return (value is not None) == when.exists
    if "equals" in when.model_fields_set:
        return same(value, when.equals)
    # `notEquals` needs a value: without one it is not met.
    return value is not None and not same(value, when.not_equals)


def _line(result: StepResult) -> str:
    """Return the line about a step for the user: its tool's message, or why it was not called."""
    message = (result.structured_content or {}).get("message") or result.message
    return f"{result.tool}: {message or result.status}"


def _visible(tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request for a model, without secret arguments."""
    shown = {name: value for name, value in arguments.items() if name not in SECRET_ARGUMENTS}
    return {"name": tool, "arguments": shown}


def _unrun(
    step: StepRequest, status: Literal["failed", "skipped", "not_run"], message: str
) -> StepResult:
    return StepResult(
        id=step.id,
        tool=step.params.name,
        status=status,
        message=message,
        is_error=status != "skipped",
    )
