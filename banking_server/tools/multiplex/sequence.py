"""Running the steps of one `multiplex_tools` call, over the rounds of questions that they need."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Literal, NoReturn, cast

from mcp import MCPError
from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, InputRequiredResult, TextContent, Tool
from pydantic import BaseModel, Field, ValidationError

from banking_server.bank.rules import excerpt
from banking_server.chaining import META_KEY
from banking_server.chaining.arguments import argument_problem
from banking_server.chaining.content import for_user_alone, undeclared_arguments
from banking_server.chaining.values import same
from banking_server.tools.asking import asks_in_results
from banking_server.tools.calling import App, BankServer
from banking_server.tools.declaration import SECRET_ARGUMENTS
from banking_server.tools.multiplex.expressions import Work
from banking_server.tools.multiplex.inference import (
    INSTRUCTIONS,
    as_told,
    converted,
    place_at,
    prompts,
    question,
)
from banking_server.tools.multiplex.places import ArgumentNotFound, Path, name_of, naming, replaced
from banking_server.tools.multiplex.references import references
from banking_server.tools.multiplex.request import Condition, StepRequest
from banking_server.tools.multiplex.sampling import (
    answer_text,
    ask_now,
    offers_sampling,
    sampling_request,
)
from banking_server.tools.prompts import PROMPT_MARK
from banking_server.tools.results import Structured, telling, text
from banking_server.tools.sdk import can_send_request, inner_context


class StepResult(Structured):
    """What became of one step; with the members of a tool result, if it was run."""

    id: int | str = Field(title="ID")
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
        description="completed: every step was tried, even if some failed. stopped: a step's "
        "result named the tool to call next, so the rest was not run."
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


class _Interrupted(Exception):
    def __init__(self, result: InputRequiredResult) -> None:
        self.result = result


class Steps:
    """One call's steps under way."""

    def __init__(
        self, steps: Sequence[StepRequest], known: dict[str, Tool], ctx: Context[App, Any]
    ) -> None:
        self.steps = steps
        self.known = known
        self.ctx = ctx
        self.server = cast(BankServer, ctx.mcp_server)
        self.app: App = ctx.request_context.lifespan_context
        self.progress = _restored(ctx.request_state)
        self.next_tool: Any = None
        self.work = Work()

    async def run(self) -> CallToolResult | InputRequiredResult:
        """Run what is left of the steps; return their results, or the next questions."""
        try:
            while len(self.progress.done) < len(self.steps) and self.next_tool is None:
                step = self.steps[len(self.progress.done)]
                result = await self._step(step)
                self.progress = _Progress(
                    done=[*self.progress.done, result], shown=self.progress.shown
                )
        except _Interrupted as interrupted:
            return interrupted.result
        return self._result()

    async def _step(self, step: StepRequest) -> StepResult:
        done = self.progress.done
        if self.progress.arguments is None:
            try:
                if step.when is not None and not _holds(step.when, done, self.work):
                    return _unrun(step, "skipped", "Its condition does not hold.")
            except ArgumentNotFound as problem:
                return _unrun(step, "failed", f"when: {problem}.")
            if not self.server.lets_in(step.params.name):
                # Refused, and audited, as any call is; nothing is looked up or inferred for it.
                return await self._call(step, step.params.arguments)
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
        for path, reference in references(step.params.arguments):
            with naming(path):
                arguments = replaced(arguments, path, reference.value(seen, self.work))
        wanted = list(prompts(step.params.arguments))
        if not wanted:
            return arguments
        unknown = undeclared_arguments(tool.input_schema, arguments)
        if unknown:
            # Nobody's model is asked for what the tool would refuse anyway.
            raise ArgumentNotFound(
                f"arguments.{excerpt(unknown[0])}: {tool.name} has no such argument."
            )
        request = _request(step.params.name, arguments)
        answers = await self._infer(wanted, tool, seen, request)
        for (path, _), words in zip(wanted, answers, strict=True):
            with naming(path):
                value = converted(words, place_at(tool.input_schema, path), path[-1])
            arguments = replaced(arguments, path, value)
        problem = argument_problem(tool.input_schema, arguments)
        if problem is not None:
            raise ArgumentNotFound(f"What was inferred does not fit: {problem}.")
        return arguments

    async def _infer(
        self,
        wanted: Sequence[tuple[Path, str]],
        tool: Tool,
        seen: Sequence[dict[str, Any]],
        request: Mapping[str, Any],
    ) -> list[str]:
        """Ask for all of a step's inferred arguments: the client's own model, else ours.

        It is told the whole `request` too: what one argument is to be shows in the others.
        """
        history = [
            {"request": _request(step.params.name, step.params.arguments), **as_told(result)}
            for step, result in zip(self.steps, seen, strict=False)
        ]
        history.append({"request to complete": request})
        asked = [
            question(prompt, name_of(path), place_at(tool.input_schema, path).schema, history)
            for path, prompt in wanted
        ]
        if offers_sampling(self.ctx):
            if asks_in_results(self.ctx):
                return self._sampled(wanted, asked)
            if can_send_request(self.ctx):
                return await _one_by_one(wanted, asked, lambda words: ask_now(self.ctx, words))
        infer = self.app.infer
        if infer is None:
            with naming(wanted[0][0]):
                raise ArgumentNotFound(
                    f"begins {PROMPT_MARK} and needs a language model. Use a client that offers "
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
                {key: sampling_request(words) for key, words in questions.items()},
                self.progress.model_copy(update={"asked": questions}),
            )
        answers = []
        for (path, _), key in zip(wanted, questions, strict=True):
            with naming(path):
                answers.append(answer_text(responses[key]))
        return answers

    async def _call(self, step: StepRequest, arguments: dict[str, Any]) -> StepResult:
        asked = self.progress.inner is not None
        context = inner_context(
            self.ctx,
            input_responses=self.ctx.input_responses if asked else None,
            request_state=self.progress.inner,
        )
        try:
            result = await self.server.call_tool(step.params.name, arguments, context)
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
        # What is for the user alone, as a confirmation code, is kept from whoever infers arguments.
        self.progress.shown += [item for item in content if for_user_alone(item)]
        structured = result.structured_content
        for item in content[1:]:
            if for_user_alone(item) and structured is not None and "message" in structured:
                # It is also part of what the user is told (`results.result`).
                shorter = structured["message"].replace(f"\n{item['text']}", "")
                structured = {**structured, "message": shorter}
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
        results = [
            *done,
            *(
                _unrun(step, "not_run", "An earlier step's result names the tool to call next.")
                for step in self.steps[len(done) :]
            ),
        ]
        told = "\n".join(map(_told, results))
        # Nobody but the caller reads this, and some hosts show the user nothing else.
        codes = [item["text"] for item in self.progress.shown if item["text"] not in told]
        structured = telling(
            "\n".join([told, *codes]),
            MultiplexOut(
                status="stopped" if self.next_tool is not None else "completed", results=results
            ),
        )
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


def _holds(when: Condition, done: Sequence[StepResult], work: Work) -> bool:
    """Return whether a step's condition holds. Raises `ArgumentNotFound` if nobody can tell."""
    given = when.model_fields_set
    results = [_wire(result) for result in done]
    value, exists = when.looks_at.look(results, work)
    if "exists" in given:
        return exists == when.exists
    if "equals" in given:
        return same(value, when.equals)
    # Of what is not there nothing can be said, not even what it is not.
    return exists and not same(value, when.not_equals)


def _told(result: StepResult) -> str:
    """Return what the user is told of a step: by its tool, or why it was not called."""
    told = (result.structured_content or {}).get("message") or result.message
    return f"{result.tool}: {told or result.status}"


def _wire(result: StepResult) -> dict[str, Any]:
    """Return a step's result as it goes to the client: what pointers lead into."""
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)


def _missing(step: StepRequest, done: Sequence[StepResult]) -> str | None:
    """Say which earlier step this one needs and cannot have; None if it has all it needs."""
    needed = {
        number
        for _, reference in references(step.params.arguments)
        for number in reference.needed(len(done))
    }
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


def _request(tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request as a model may see it: without what confirms for the customer."""
    shown = {name: value for name, value in arguments.items() if name not in SECRET_ARGUMENTS}
    return {"name": tool, "arguments": shown}


async def _one_by_one(
    wanted: Sequence[tuple[Path, str]], asked: Sequence[str], ask: Callable[[str], Awaitable[str]]
) -> list[str]:
    answers = []
    for (path, _), words in zip(wanted, asked, strict=True):
        with naming(path):
            answers.append(await ask(words))
    return answers
