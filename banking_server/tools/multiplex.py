"""Several calls in one: a list of tool requests, run in order, as the caller.

Each step is a call like any other: the same authorization, validation, questions to the customer,
limits and audit event. What a step needs from the ones before it is found by `inference`.
"""

import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Final, Literal, NoReturn

from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp.types import (
    CallToolResult,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    InputRequiredResult,
    InputResponseRequestParams,
    SamplingMessage,
    TextContent,
    Tool,
)
from mcp.types.version import is_version_at_least
from pydantic import BaseModel, ConfigDict, Field, StrictBool, ValidationError

from banking_server.bank.rules import excerpt
from banking_server.chaining import META_KEY
from banking_server.chaining.arguments import argument_problem
from banking_server.chaining.content import for_user_alone
from banking_server.chaining.values import is_json, same
from banking_server.tools.asking import QUESTIONS_IN_RESULTS
from banking_server.tools.calling import App
from banking_server.tools.declaration import SECRET_ARGUMENTS, WholeNumber, bank_tool
from banking_server.tools.inference import (
    INSTRUCTIONS,
    PROMPT_PREFIX,
    ArgumentNotFound,
    Path,
    converted,
    follow,
    prompts,
    question,
    references,
    replaced,
    schema_at,
    step_of,
)
from banking_server.tools.results import Structured, refuse, text

NAME: Final = "multiplex_tools"
MAX_STEPS: Final = 10
MAX_PROMPTS: Final = 20
"""Arguments to be inferred in one call: each costs somebody a model's answer."""

MAX_ANSWER_TOKENS: Final = 500
"""Tokens that a client's model may spend on one argument."""


class Condition(BaseModel):
    """Run the step only if an earlier result is so: exactly one of the three comparisons."""

    model_config = ConfigDict(extra="forbid")

    ref: str = Field(
        alias="$ref", description='JSON Pointer into the results: "#/0/structuredContent/status".'
    )
    equals: Any = Field(default=None, description="Run if the value is this.")
    not_equals: Any = Field(default=None, alias="notEquals", description="Run if it is not this.")
    exists: StrictBool = Field(default=True, description="Run if there is such a value, or none.")


class StepParams(BaseModel):
    """The tool and its arguments."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(description="The tool's name.")
    arguments: dict[str, Any] = Field(
        default_factory=dict,
        description="The tool's arguments. A string that begins PROMPT_ARGUMENT: is inferred by a "
        'model; {"$ref": "#/0/structuredContent/…"} is taken from an earlier result.',
    )


class StepRequest(BaseModel):
    """One `tools/call` request."""

    model_config = ConfigDict(extra="forbid")

    jsonrpc: Literal["2.0"] = Field(description="JSON-RPC version.")
    id: WholeNumber | str = Field(description="The request's id, given back with its result.")
    method: Literal["tools/call"] = Field(description="The MCP method.")
    params: StepParams
    when: Condition | None = Field(default=None, description="Run only if this holds.")


class StepResult(Structured):
    """What became of one step; the members of a tool result, where it was run."""

    id: int | str
    tool: str
    status: Literal["done", "failed", "skipped", "not_run"] = Field(
        description="skipped: its condition did not hold. not_run: what it needs is missing."
    )
    message: str | None = Field(default=None, description="Why it failed or was not run.")
    is_error: bool = False
    content: list[dict[str, Any]] | None = None
    structured_content: dict[str, Any] | None = None


class MultiplexOut(Structured):
    """The steps' results, in order."""

    status: Literal["completed", "stopped"] = Field(
        description="stopped: a step's result named the tool to call next, so the rest was not run."
    )
    results: list[StepResult]


class _Progress(BaseModel):
    """What is known when a question interrupts the call, sealed into its request state."""

    done: list[StepResult] = []
    shown: list[dict[str, Any]] = []
    """Content that the finished steps have for the user alone."""
    arguments: dict[str, Any] | None = None
    """The interrupted step's arguments, once they are found."""
    asked: dict[str, str] = {}
    """What the client's model was asked, by the key of the question."""
    inner: str | None = None
    """The interrupted tool's own request state."""


@bank_tool(title="Multiplex Tools", destructive=True, idempotent=False)
async def multiplex_tools(
    tools: Annotated[
        list[StepRequest],
        Field(min_length=1, max_length=MAX_STEPS, description="The requests, in order."),
    ],
    ctx: Context[App, Any],
) -> Annotated[CallToolResult, MultiplexOut] | InputRequiredResult:
    """Call several tools in sequence with one request, and get the list of their results. If an
    argument depends on an earlier result, refer to it with {"$ref":
    "#/0/structuredContent/accounts/1/accountId"}, or describe it for a language model with a
    string like "PROMPT_ARGUMENT: the id of the savings account". A step with `when` runs only if
    an earlier result is as it says."""
    known = {tool.name: tool for tool in await ctx.mcp_server.list_tools()}
    mistake = _mistake(tools, known)
    if mistake is not None:
        return mistake
    return await _Sequence(tools, known, ctx).run()


def _mistake(steps: Sequence[StepRequest], known: dict[str, Tool]) -> CallToolResult | None:
    """Return the refusal of a sequence that cannot work; nothing of it is run."""
    ids = [step.id for step in steps]
    for index, step in enumerate(steps):
        place = f"tools.{index}"
        if step.params.name == NAME:
            return _refused(f"{place}.params.name", f"{NAME} cannot be called inside itself")
        if step.params.name not in known:
            return _refused(
                f"{place}.params.name",
                f"there is no tool {excerpt(step.params.name)!r}; there are {', '.join(known)}",
            )
        if ids.index(step.id) != index:
            return _refused(f"{place}.id", f"the id {excerpt(str(step.id))!r} is there twice")
        if not is_json(step.params.arguments):
            return _refused(f"{place}.params.arguments", "holds broken Unicode, or no JSON")
        pointers = [pointer for _, pointer in references(step.params.arguments)]
        if step.when is not None:
            pointers.append(step.when.ref)
            if len(step.when.model_fields_set - {"ref"}) != 1:
                return _refused(
                    f"{place}.when", "takes exactly one of equals, notEquals and exists"
                )
        for pointer in pointers:
            source = step_of(pointer)
            if source is None or source >= index:
                return _refused(
                    place,
                    f"{excerpt(pointer, 200)!r} must lead into an earlier result, like '#/0/…'",
                )
    if sum(1 for step in steps for _ in prompts(step.params.arguments)) > MAX_PROMPTS:
        return _refused("tools", f"at most {MAX_PROMPTS} arguments can be inferred in one call")
    return None


def _refused(place: str, why: str) -> CallToolResult:
    return refuse("refused", "tools", f"{place}: {why}. Nothing was run.")


class _Interrupted(Exception):
    def __init__(self, result: InputRequiredResult) -> None:
        self.result = result


class _Sequence:
    """One call's steps under way."""

    def __init__(
        self, steps: Sequence[StepRequest], known: dict[str, Tool], ctx: Context[App, Any]
    ) -> None:
        self.steps = steps
        self.known = known
        self.ctx = ctx
        self.app: App = ctx.request_context.lifespan_context
        self.progress = _restored(ctx.request_state)
        self.next_tool: Any = None

    async def run(self) -> CallToolResult | InputRequiredResult:
        try:
            while len(self.progress.done) < len(self.steps) and self.next_tool is None:
                step = self.steps[len(self.progress.done)]
                result = await self._step(step)
                self.progress = _Progress(
                    done=[*self.progress.done, result], shown=self.progress.shown
                )
        except _Interrupted as interrupted:
            return interrupted.result
        return self._answer()

    async def _step(self, step: StepRequest) -> StepResult:
        done = self.progress.done
        if self.progress.arguments is None:
            if step.when is not None and not _holds(step.when, done):
                return _unrun(step, "skipped", "Its condition does not hold.")
            missing = _missing(step, done)
            if missing is not None:
                return _unrun(step, "not_run", missing)
            try:
                self.progress.arguments = await self._arguments(step)
            except ArgumentNotFound as problem:
                return _unrun(step, "failed", str(problem))
        return await self._call(step, self.progress.arguments)

    async def _arguments(self, step: StepRequest) -> dict[str, Any]:
        """Return the step's arguments with everything found that was to be found."""
        tool = self.known[step.params.name]
        arguments: dict[str, Any] = step.params.arguments
        seen = [_wire(result) for result in self.progress.done]
        for path, pointer in references(step.params.arguments):
            with _naming(path):
                arguments = replaced(arguments, path, follow(pointer, seen))
        wanted = list(prompts(step.params.arguments))
        if not wanted:
            return arguments
        answers = await self._infer(wanted, tool, seen)
        for (path, _), words in zip(wanted, answers, strict=True):
            with _naming(path):
                value = converted(words, schema_at(tool.input_schema, path))
            arguments = replaced(arguments, path, value)
        problem = argument_problem(tool.input_schema, arguments)
        if problem is not None:
            raise ArgumentNotFound(f"What was inferred does not fit: {problem}.")
        return arguments

    async def _infer(
        self, wanted: Sequence[tuple[Path, str]], tool: Tool, seen: Sequence[dict[str, Any]]
    ) -> list[str]:
        """Ask for all of a step's inferred arguments: the client's own model, else ours."""
        history = [
            {"request": _request(earlier), "result": result}
            for earlier, result in zip(self.steps, seen, strict=False)
        ]
        asked = [
            question(prompt, _name(path), schema_at(tool.input_schema, path), history)
            for path, prompt in wanted
        ]
        capabilities = self.ctx.client_capabilities
        if capabilities is not None and capabilities.sampling is not None:
            if is_version_at_least(self.ctx.protocol_version or "", QUESTIONS_IN_RESULTS):
                return self._sampled(wanted, asked)
            if self.ctx.session.can_send_request:
                return await _one_by_one(wanted, asked, self._sample_now)
        infer = self.app.infer
        if infer is None:
            with _naming(wanted[0][0]):
                raise ArgumentNotFound(
                    f"begins {PROMPT_PREFIX} and needs a language model. Use a client that offers "
                    "sampling, or start the server with BANKING_MODEL_URL and BANKING_MODEL_NAME"
                )
        return await _one_by_one(wanted, asked, lambda words: infer(INSTRUCTIONS, words))

    def _sampled(self, wanted: Sequence[tuple[Path, str]], asked: Sequence[str]) -> list[str]:
        """Return the client's answers, or interrupt the call to ask for them (2026-07-28)."""
        step = len(self.progress.done)
        questions = {f"{step}/{number}": words for number, words in enumerate(asked)}
        responses = self.ctx.input_responses or {}
        if self.progress.asked != questions or not set(questions) <= set(responses):
            self._interrupt(
                {
                    key: CreateMessageRequest(params=_sampling(words))
                    for key, words in questions.items()
                },
                self.progress.model_copy(update={"asked": questions}),
            )
        answers = []
        for (path, _), key in zip(wanted, questions, strict=True):
            with _naming(path):
                answers.append(_answer_text(responses[key]))
        return answers

    async def _sample_now(self, words: str) -> str:
        """Ask the client's model over the open connection (2025-11-25)."""
        try:
            answer = await self.ctx.session.send_request(
                CreateMessageRequest(params=_sampling(words)),
                CreateMessageResult,
                metadata=ServerMessageMetadata(related_request_id=self.ctx.request_id),
            )
        except MCPError as error:
            raise ArgumentNotFound(f"the client's model gave no answer: {error.message}") from None
        except ValidationError:
            raise ArgumentNotFound("the client's model gave no answer that can be read") from None
        return _answer_text(answer)

    async def _call(self, step: StepRequest, arguments: dict[str, Any]) -> StepResult:
        inner = InputResponseRequestParams(
            input_responses=self.ctx.input_responses if self.progress.inner is not None else None,
            request_state=self.progress.inner,
        )
        context: Context[App, Any] = Context(
            request_context=self.ctx.request_context,
            mcp_server=self.ctx.mcp_server,
            input_params=inner,
        )
        try:
            result = await self.ctx.mcp_server.call_tool(step.params.name, arguments, context)
        except MCPError as error:
            return _unrun(step, "failed", error.message)
        if isinstance(result, InputRequiredResult):
            self._interrupt(
                result.input_requests or {},
                self.progress.model_copy(update={"inner": result.request_state or ""}),
            )
        return self._finished(step, result)

    def _interrupt(self, requests: dict[str, Any], progress: _Progress) -> NoReturn:
        raise _Interrupted(
            InputRequiredResult(input_requests=requests, request_state=progress.model_dump_json())
        )

    def _finished(self, step: StepRequest, result: CallToolResult) -> StepResult:
        self.next_tool = (result.meta or {}).get(META_KEY)
        content = [
            block.model_dump(mode="json", by_alias=True, exclude_none=True)
            for block in result.content
        ]
        # What is for the user alone is kept from every model, as a confirmation code is.
        self.progress.shown += [item for item in content if for_user_alone(item)]
        return StepResult(
            id=step.id,
            tool=step.params.name,
            status="failed" if result.is_error else "done",
            is_error=bool(result.is_error),
            content=[item for item in content if not for_user_alone(item)],
            structured_content=result.structured_content,
        )

    def _answer(self) -> CallToolResult:
        done = self.progress.done
        results = [
            *done,
            *(
                _unrun(step, "not_run", "An earlier step's result names the tool to call next.")
                for step in self.steps[len(done) :]
            ),
        ]
        structured = MultiplexOut(
            status="stopped" if self.next_tool is not None else "completed", results=results
        ).model_dump(mode="json", by_alias=True, exclude_none=True)
        shown = [TextContent.model_validate(block) for block in self.progress.shown]
        meta = None if self.next_tool is None else {META_KEY: self.next_tool}
        return CallToolResult(
            content=[*shown, text(json.dumps(structured["results"], ensure_ascii=False))],
            structured_content=structured,
            is_error=any(result.status in ("failed", "not_run") for result in done),
            _meta=meta,
        )


def _restored(request_state: str | None) -> _Progress:
    """Read back what a question interrupted. The SDK has verified that it is our own."""
    if not request_state:
        return _Progress()
    try:
        return _Progress.model_validate_json(request_state)
    except ValidationError:
        # Written by an earlier version of this server: the bank's calls can be repeated safely.
        return _Progress()


def _holds(when: Condition, done: Sequence[StepResult]) -> bool:
    given = when.model_fields_set
    try:
        value = follow(when.ref, [_wire(result) for result in done])
    except ArgumentNotFound:
        return "exists" in given and not when.exists
    if "exists" in given:
        return when.exists
    if "equals" in given:
        return same(value, when.equals)
    return not same(value, when.not_equals)


def _wire(result: StepResult) -> dict[str, Any]:
    """Return a step's result as it goes to the client: what pointers lead into."""
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)


def _missing(step: StepRequest, done: Sequence[StepResult]) -> str | None:
    """Say which earlier step this one needs and cannot have; None if there is none."""
    needed = {step_of(pointer) for _, pointer in references(step.params.arguments)}
    for index, result in enumerate(done):
        if index in needed and result.status != "done":
            return f"It needs the result of {result.id!r}, which {_PAST[result.status]}."
        # A prompt may be about anything before it, so it depends on all that ought to be there.
        if result.status in ("failed", "not_run") and any(prompts(step.params.arguments)):
            past = _PAST[result.status]
            return f"It is to be inferred from earlier results, and {result.id!r} {past}."
    return None


_PAST: Final = {"failed": "failed", "skipped": "was skipped", "not_run": "was not run"}


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


def _request(step: StepRequest) -> dict[str, Any]:
    """Return a request as a model may see it: without what only the customer knows."""
    arguments = {
        name: value for name, value in step.params.arguments.items() if name not in SECRET_ARGUMENTS
    }
    return {"name": step.params.name, "arguments": arguments}


def _name(path: Path) -> str:
    return ".".join(["arguments", *map(str, path)])


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Say of a value that is not found which argument it was for."""
    try:
        yield
    except ArgumentNotFound as problem:
        raise ArgumentNotFound(f"{_name(path)}: {str(problem).rstrip('.')}.") from None


async def _one_by_one(
    wanted: Sequence[tuple[Path, str]], asked: Sequence[str], ask: Callable[[str], Awaitable[str]]
) -> list[str]:
    answers = []
    for (path, _), words in zip(wanted, asked, strict=True):
        with _naming(path):
            answers.append(await ask(words))
    return answers


def _sampling(words: str) -> CreateMessageRequestParams:
    return CreateMessageRequestParams(
        messages=[SamplingMessage(role="user", content=text(words))],
        system_prompt=INSTRUCTIONS,
        max_tokens=MAX_ANSWER_TOKENS,
        temperature=0,
    )


def _answer_text(answer: object) -> str:
    if not isinstance(answer, CreateMessageResult) or not isinstance(answer.content, TextContent):
        raise ArgumentNotFound("the client's model answered with something other than text")
    if answer.stop_reason == "maxTokens":
        raise ArgumentNotFound("the answer of the client's model was cut off")
    return answer.content.text
