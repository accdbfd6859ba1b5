"""What the server asks during a request, and how it reaches the user.

A client of 2025-11-25 is asked at once, by a request to it. A client of 2026-07-28 is told in the
result of its request, which is then interim: it asks its user, and sends the request again with the
answers. Meanwhile the work waits here, parked under a state that only this proxy can read and that
is good for one answer.
"""

import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import anyio
from mcp import MCPError
from mcp.types import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    LOG_LEVEL_META_KEY,
    METHOD_NOT_FOUND,
    REQUEST_TIMEOUT,
)

from banking_server.proxy.eras import Declared, Json
from banking_server.proxy.sdk import Context, Outbound, allowed_log_levels, request_channel

_CAPABILITY_OF: Final = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
_IN_WORDS: Final = {"elicitation": "Elicitation", "sampling": "Sampling", "roots": "List roots"}


class NotAnswered(MCPError):
    """The client did not answer a question of the server's, which waits in the midst of a call."""


class Running:
    """A request of the client that is being answered."""

    def __init__(self, ctx: Context, declared: Declared) -> None:
        self.method = ctx.method
        self.declared = declared
        self.modern = declared.modern
        self.asking = 0
        """How often the client is being asked for it at this moment."""
        self._open: set[anyio.CancelScope] = set()
        self._limits: list[anyio.CancelScope] = []
        self._left: dict[anyio.CancelScope, float] = {}
        self._before: float = 0
        self._reached: float = 0
        self.upstream_token: Any = None
        """The progress token under which the server knows this request."""
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
        """Return whether a notification that names no request may go to the client with this one.

        On 2026-07-28 a client says with each request what it wants to be logged, and has no word
        for the end of an elicitation.
        """
        if method == "notifications/message":
            return self._channel is not None and params.get("level") in self._log_levels
        if method == "notifications/elicitation/complete" and self.modern:
            return False
        return self._channel is not None and self.method != "subscriptions/listen"

    async def notify(self, method: str, params: Json | None) -> None:
        """Send the client a notification that belongs to this request, if it still listens."""
        if self._channel is not None:
            await self._channel.notify(method, params)

    def begin_step(self) -> None:
        """Let what was reached until now be where the progress of the next step begins."""
        self._before = self._reached

    async def progress(self, params: Json) -> None:
        """Tell the client how far its request is, under the token that it gave out.

        A chain is one request to it, so each step goes on where the one before it ended.
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
        """Put one question to the client. Raises MCPError if it refuses or cannot be asked."""
        answers = await self.ask_all({"question": {"method": method, "params": params}})
        answer: Json = answers["question"]
        return answer

    async def ask_all(self, questions: Mapping[str, Any]) -> Json:
        """Put several questions to the client, and return its answers by the same names.

        Raises MCPError if it refuses one, or cannot be asked.
        """
        for question in questions.values():
            self._check(question)
        self._stop_clocks()
        self.asking += 1
        scope = anyio.CancelScope()
        self._open.add(scope)
        try:
            with scope:
                return await self._ask_all(questions)
            raise _nobody_is_there()
        finally:
            self._open.remove(scope)
            self.asking -= 1
            self._start_clocks()

    def give_up_asking(self) -> None:
        """Let what waits for the client go on as if nobody were there."""
        for scope in self._open:
            scope.cancel()

    async def _ask_all(self, questions: Mapping[str, Any]) -> Json:
        if self._channel is None:
            raise _nobody_is_there()
        return {
            name: await self._channel.send_raw_request(
                question["method"], _with_id(question["method"], question.get("params"))
            )
            for name, question in questions.items()
        }

    def _check(self, question: Any) -> None:
        """Refuse what the client cannot answer, as a client without the capability does."""
        if not isinstance(question, Mapping) or not isinstance(question.get("method"), str):
            raise MCPError(code=INVALID_REQUEST, message="The server's question is not a request.")
        capability = _CAPABILITY_OF.get(question["method"])
        if capability is None:
            if self.modern:
                raise MCPError(
                    code=METHOD_NOT_FOUND, message="Method not found", data=question["method"]
                )
            return
        said: Any = self.declared.capabilities.get(capability)
        can = isinstance(said, Mapping)
        if can and capability == "elicitation":
            # No mode at all means forms, on both sides.
            modes = [mode for mode in ("form", "url") if mode in said] or ["form"]
            params = question.get("params")
            asked_for = params.get("mode", "form") if isinstance(params, Mapping) else "form"
            can = asked_for in modes
        if not can:
            raise MCPError(code=INVALID_REQUEST, message=f"{_IN_WORDS[capability]} not supported")

    @contextmanager
    def limited(self, seconds: float | None) -> Iterator[None]:
        """Let what is inside take `seconds` at most, without the time in which the user is asked.

        Raises MCPError when they are over.
        """
        with anyio.CancelScope() as scope:
            if seconds is not None:
                scope.deadline = anyio.current_time() + seconds
                self._limits.append(scope)
            try:
                yield
            finally:
                if scope in self._limits:
                    self._limits.remove(scope)
        if scope.cancelled_caught:
            raise MCPError(
                code=REQUEST_TIMEOUT, message=f"The server did not answer within {seconds:g} s."
            )

    def _stop_clocks(self) -> None:
        if not self.asking:
            now = anyio.current_time()
            self._left = {scope: scope.deadline - now for scope in self._limits}
            for scope in self._left:
                scope.deadline = float("inf")

    def _start_clocks(self) -> None:
        if not self.asking:
            for scope, left in self._left.items():
                scope.deadline = anyio.current_time() + left


class _Question:
    def __init__(self, request: Any) -> None:
        self.request = request
        self.handed_out = False
        self.answered = anyio.Event()
        self.answer: Json = {}


class Parked(Running):
    """A request of a modern client: its work goes on between the rounds in which it is asked."""

    def __init__(self, ctx: Context, declared: Declared, *, parked_for: float) -> None:
        super().__init__(ctx, declared)
        self.key = secrets.token_urlsafe(16)
        self._parked_for = parked_for
        self._round = 0
        self._questions: dict[str, _Question] = {}
        self._news = anyio.Event()
        self._scope = anyio.CancelScope()
        self._result: Json | None = None
        self._error: Exception | None = None
        self._done = False
        self._collected = anyio.Event()

    @property
    def collected(self) -> bool:
        """Whether the client has the result, or will never have one."""
        return self._collected.is_set()

    async def work(self, do: Callable[[], Awaitable[Json]]) -> None:
        """Do the work of the request, in a task of its own, and keep its result. Never raises."""
        try:
            with self._scope:
                self._result = await do()
        except Exception as error:
            self._error = error
        finally:
            self._done = True
            self._news.set()
        if not self._scope.cancelled_caught:
            # Whoever was asked comes back for it, though the server did not wait for the answer.
            with anyio.move_on_after(self._parked_for):
                await self._collected.wait()

    def cancel(self) -> None:
        """Give the work up."""
        self._scope.cancel()
        self._collected.set()

    async def next_round(self) -> Json:
        """Return the result, or the interim result that asks the client. Raises what `do` raised.

        If the client goes away meanwhile, the work is given up.
        """
        try:
            while not self._done and not self._to_hand_out():
                await self._news.wait()
                self._news = anyio.Event()
        except BaseException:
            self.cancel()
            raise
        finally:
            self._channel = None
        if not self._done:
            return self._interim()
        self._collected.set()
        if self._error is not None:
            raise self._error
        if self._result is None:
            raise MCPError(code=INVALID_REQUEST, message="The call was given up.")
        return self._result

    def resume(self, ctx: Context, state: str, answers: Any) -> None:
        """Take the answers of a later round. Raises MCPError if the round is over already."""
        if self._channel is not None or state != self._state():
            raise not_asked_any_more()
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
        self._news.set()
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


def not_asked_any_more() -> MCPError:
    """Return the refusal of an answer whose question was answered before, or has been given up."""
    return MCPError(
        code=INVALID_PARAMS,
        message="Nothing waits for this answer any more. Call again to be asked anew.",
    )


def _nobody_is_there() -> MCPError:
    return MCPError(code=INVALID_REQUEST, message="Nobody is there to be asked any more.")


def _with_id(method: str, params: Any) -> Any:
    """Return the params of a question with the id that a URL has on 2025-11-25."""
    is_url = isinstance(params, Mapping) and params.get("mode") == "url"
    if method != "elicitation/create" or not is_url or "elicitationId" in params:
        return params
    return {**params, "elicitationId": secrets.token_urlsafe(16)}
