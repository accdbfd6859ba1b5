"""The server's questions during a request, and their way to the user.

A client of 2025-11-25 gets a question at once, as a request. A client of 2026-07-28 gets it in an
interim result: it asks its user, and sends its request again with the answers. Meanwhile the work
is parked here. Its state is a random name that the same caller can use for one answer, with the
same request.
"""

import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import anyio
import anyio.lowlevel
from mcp import MCPError
from mcp.types import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    LOG_LEVEL_META_KEY,
    METHOD_NOT_FOUND,
    REQUEST_TIMEOUT,
)

from tool_chaining_proxy.eras import Declared, Json
from tool_chaining_proxy.hosting.call_timer import CallTimer
from tool_chaining_proxy.sdk import Context, Outbound, allowed_log_levels, request_channel

_CAPABILITY_OF: Final = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
_FEATURE: Final = {"elicitation": "Elicitation", "sampling": "Sampling", "roots": "List roots"}


class Running:
    """A request of the client that is being answered."""

    def __init__(self, ctx: Context, declared: Declared) -> None:
        self.method = ctx.method
        self.declared = declared
        self.modern = declared.modern
        self._timer = CallTimer()
        self._open: set[anyio.CancelScope] = set()
        self._before: float = 0
        self._reached: float = 0
        self.upstream_token: Any = None
        """The progress token of this request to the server."""
        self.rounds = 0
        """How often the server asked for input in the current call."""
        self.on_loss: Callable[[], None] = _nothing
        """Called if the client does not get the result of a chain (TC-C-55)."""
        self._attach(ctx)

    def _attach(self, ctx: Context) -> None:
        meta = (ctx.params or {}).get("_meta")
        meta = meta if isinstance(meta, Mapping) else {}
        self.id = ctx.request_id
        self.token = meta.get("progressToken")
        level = meta.get(LOG_LEVEL_META_KEY) if self.modern else None
        self.wanted_level = level if isinstance(level, str) else None
        self._log_levels = allowed_log_levels(self.declared.revision, meta)
        self._channel: Outbound | None = request_channel(ctx)

    def carries(self, method: str, params: Json) -> bool:
        """Return whether the client may get a notification without a request id on this one.

        On 2026-07-28 each request has the log level that the client wants, and there is no
        notification for the end of an elicitation.
        """
        if method == "notifications/message":
            return self._channel is not None and params.get("level") in self._log_levels
        if method == "notifications/elicitation/complete" and self.modern:
            return False
        return self._channel is not None and self.method != "subscriptions/listen"

    async def notify(self, method: str, params: Json | None) -> None:
        """Send the client a notification of this request, if its channel is still open."""
        if self._channel is not None:
            await self._channel.notify(method, params)

    def begin_step(self) -> None:
        """Begin the progress of the next call of the chain where the last one ended."""
        self._before = self._reached

    async def progress(self, params: Json) -> None:
        """Pass progress on to the client, with the client's own token.

        A chain is one request of the client, so the progress of each call continues the last one.
        """
        if self.token is None:
            return
        passed = {**params, "progressToken": self.token}
        for member in ("progress", "total"):
            if isinstance(value := params.get(member), int | float):
                passed[member] = self._before + value
        done = passed.get("progress")
        if isinstance(done, int | float):
            if self._before and done <= self._reached:
                return
            self._reached = max(self._reached, done)
        await self.notify("notifications/progress", passed)

    async def ask(self, method: str, params: Json) -> Json:
        """Ask the client one question. Raises MCPError if it refuses or cannot be asked."""
        answers = await self.ask_all({"question": {"method": method, "params": params}})
        answer: Json = answers["question"]
        return answer

    async def ask_all(self, questions: Mapping[str, Any]) -> Json:
        """Ask the client several questions, and return its answers by the same names.

        Raises MCPError if it refuses one, or cannot be asked.
        """
        for question in questions.values():
            self._check(question)
        scope = anyio.CancelScope()
        self._open.add(scope)
        try:
            with self._timer.paused(), scope:
                return await self._ask_all(questions)
            raise _client_is_gone()
        finally:
            self._open.remove(scope)

    def give_up_asking(self) -> None:
        """End every question as if the client had gone away."""
        for scope in self._open:
            scope.cancel()

    async def _ask_all(self, questions: Mapping[str, Any]) -> Json:
        if self._channel is None:
            raise _client_is_gone()
        return {
            name: await self._channel.send_raw_request(
                question["method"], _with_id(question["method"], question.get("params"))
            )
            for name, question in questions.items()
        }

    def _check(self, question: Any) -> None:
        """Raise MCPError for a question that the client cannot answer, as such a client does."""
        if not isinstance(question, Mapping) or not isinstance(question.get("method"), str):
            raise MCPError(code=INVALID_REQUEST, message="The server's question is not a request.")
        capability = _CAPABILITY_OF.get(question["method"])
        if capability is None:
            if self.modern:
                raise MCPError(
                    code=METHOD_NOT_FOUND, message="Method not found", data=question["method"]
                )
            return
        declared: Any = self.declared.capabilities.get(capability)
        can = isinstance(declared, Mapping)
        if can and capability == "elicitation":
            # Without a mode, both sides mean forms.
            modes = [mode for mode in ("form", "url") if mode in declared] or ["form"]
            params = question.get("params")
            asked_for = params.get("mode", "form") if isinstance(params, Mapping) else "form"
            can = asked_for in modes
        if not can:
            raise MCPError(code=INVALID_REQUEST, message=f"{_FEATURE[capability]} not supported")

    @contextmanager
    def limited(self, seconds: float | None) -> Iterator[None]:
        """Limit the block to `seconds`, without the time for questions to the user.

        Raises MCPError if it takes longer.
        """
        try:
            with self._timer.limited(seconds):
                yield
        except TimeoutError:
            raise MCPError(
                code=REQUEST_TIMEOUT, message=f"The server did not answer within {seconds:g} s."
            ) from None

    async def hand_over(self) -> None:
        """Release the result to the client. Raises if the client has cancelled the request.

        The SDK then writes the result without awaiting anything first.
        """
        try:
            await anyio.lowlevel.checkpoint_if_cancelled()
        except BaseException:
            self.on_loss()
            raise

    @property
    def asking(self) -> int:
        """The number of questions that the client has not answered yet."""
        return self._timer.asking


class _Question:
    def __init__(self, request: Any) -> None:
        self.request = request
        self.handed_out = False
        self.answered = anyio.Event()
        self.answer: Json = {}


class Parked(Running):
    """A request of a modern client, whose work continues between its rounds."""

    def __init__(self, ctx: Context, declared: Declared, *, parked_for: float) -> None:
        super().__init__(ctx, declared)
        self.key = secrets.token_urlsafe(16)
        self._asked = _asked(ctx)
        self._parked_for = parked_for
        self._round = 0
        self._questions: dict[str, _Question] = {}
        self._changed = anyio.Event()
        self._scope = anyio.CancelScope()
        self._result: Json | None = None
        self._error: Exception | None = None
        self._done = False
        self._collected = anyio.Event()
        self._delivered = False

    @property
    def collected(self) -> bool:
        """Whether the client has the result, or will never get one."""
        return self._collected.is_set()

    async def work(self, do: Callable[[], Awaitable[Json]]) -> None:
        """Do the work of the request in a task of its own, and keep its result. Never raises."""
        try:
            with self._scope:
                self._result = await do()
        except Exception as error:
            self._error = error
        finally:
            self._done = True
            self._changed.set()
        if not self._scope.cancelled_caught:
            # The client fetches the result, even if the server did not wait for its answer.
            with anyio.move_on_after(self._parked_for):
                await self._collected.wait()
            if not self._delivered:
                self.on_loss()

    def cancel(self) -> None:
        """Cancel the work."""
        self._scope.cancel()
        self._collected.set()

    async def next_round(self) -> Json:
        """Return the result, or an interim result with questions. Raises what `do` raised.

        If the client goes away meanwhile, the work is cancelled.
        """
        try:
            while not self._done and not self._to_hand_out():
                await self._changed.wait()
                self._changed = anyio.Event()
        except BaseException:
            self.cancel()
            raise
        finally:
            self._channel = None
        if not self._done:
            return self._interim()
        self._delivered = True
        self._collected.set()
        if self._error is not None:
            raise self._error
        if self._result is None:
            raise MCPError(code=INVALID_REQUEST, message="The call was cancelled.")
        return self._result

    def resume(self, ctx: Context, state: str, answers: Any) -> None:
        """Take the answers of a later round. Raises MCPError if the round is already over."""
        is_ours = state == self._state() and _asked(ctx) == self._asked
        if self._channel is not None or not is_ours:
            raise not_waiting()
        self._attach(ctx)
        self._round += 1
        self._scope.deadline = float("inf")
        answers = answers if isinstance(answers, Mapping) else {}
        for name, question in list(self._questions.items()):
            if isinstance(answer := answers.get(name), Mapping):
                question.answer = dict(answer)
                question.answered.set()
                del self._questions[name]
            else:
                question.handed_out = False

    async def _ask_all(self, questions: Mapping[str, Any]) -> Json:
        asked: dict[str, _Question] = {}
        for name, request in questions.items():
            free = name
            while free in self._questions:
                free = f"{name}-{secrets.token_hex(2)}"
            self._questions[free] = asked[name] = _Question(request)
        self._changed.set()
        try:
            for question in asked.values():
                await question.answered.wait()
        finally:
            self._questions = {
                name: question
                for name, question in self._questions.items()
                if question not in asked.values()
            }
        return {name: question.answer for name, question in asked.items()}

    def _to_hand_out(self) -> bool:
        return any(not question.handed_out for question in self._questions.values())

    def _interim(self) -> Json:
        self._scope.deadline = anyio.current_time() + self._parked_for
        for question in self._questions.values():
            question.handed_out = True
        return {
            "resultType": "input_required",
            "inputRequests": {name: one.request for name, one in self._questions.items()},
            "requestState": self._state(),
        }

    def _state(self) -> str:
        return f"{self.key}.{self._round}"


def _asked(ctx: Context) -> Json:
    """Return what a client asks for: the same in each round of a request."""
    params = {**(ctx.params or {}), "method": ctx.method}
    return {name: params.get(name) for name in ("method", "name", "uri", "arguments")}


def not_waiting() -> MCPError:
    """Return the error for an answer whose question was already answered or cancelled."""
    return MCPError(
        code=INVALID_PARAMS,
        message="No question waits for this answer any more. Make the call again.",
    )


def _nothing() -> None:
    """Do nothing: no chain was followed."""


def _client_is_gone() -> MCPError:
    return MCPError(code=INVALID_REQUEST, message="The client is gone and cannot be asked.")


def _with_id(method: str, params: Any) -> Any:
    """Return the params of a question with the id that 2025-11-25 requires for a URL."""
    is_url = isinstance(params, Mapping) and params.get("mode") == "url"
    if method != "elicitation/create" or not is_url or "elicitationId" in params:
        return params
    return {**params, "elicitationId": secrets.token_urlsafe(16)}
