"""One request of the client, from its first message to its answer.

An exchange owns what happens during its request: the server's questions, progress, log messages,
the time limits, and its end. A client of 2025-11-25 gets a question at once, as a request. A client
of 2026-07-28 gets it in an interim result: it asks its user, and sends its request again with the
answers. Meanwhile the work waits. Its state is a random name, good for one answer by the same
caller to the same request.
"""

import itertools
import logging
import secrets
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import copy_context
from typing import Any, Final

import anyio
import anyio.lowlevel
from mcp import MCPError
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    LOG_LEVEL_META_KEY,
    METHOD_NOT_FOUND,
    REQUEST_TIMEOUT,
)
from opentelemetry.propagate import extract
from opentelemetry.trace import SpanKind, StatusCode, get_current_span, get_tracer

from tool_chaining.client import waiting_for_user
from tool_chaining.hosting.call_timer import CallTimer
from tool_chaining_proxy.eras import Declared, Json
from tool_chaining_proxy.options import ProxyOptions

LEVELS: Final = (
    *("debug", "info", "notice", "warning"),
    *("error", "critical", "alert", "emergency"),
)
"""The levels of log messages, the least severe first."""

_CAPABILITY_OF: Final = {
    "elicitation/create": ("elicitation", "Elicitation"),
    "sampling/createMessage": ("sampling", "Sampling"),
    "roots/list": ("roots", "List roots"),
}
WRITING: Final = 60.0
"""Seconds in which a client must have read its answer."""

_WITHDRAWN: Final = 1.0
"""Seconds to tell a client that a question is withdrawn."""

_next_question: Final = itertools.count(1).__next__
_tracer: Final = get_tracer(__name__)

logger = logging.getLogger(__name__)


class ClientGone(Exception):
    """The client no longer gets messages of this request."""


class Channel(ABC):
    """Where the messages of a request go; the room `client_side` has one for each transport."""

    deaf = ""
    """Why the client cannot answer questions any more; empty if it can."""

    @abstractmethod
    async def send(self, message: Json) -> None:
        """Send a message that is not the answer. Return when it is written.

        Raises `ClientGone`.
        """

    @abstractmethod
    async def answer(self, outcome: Json | MCPError | None) -> None:
        """Send the answer, and return when all of it is written. None: the client cancelled.

        Raises `ClientGone`.
        """


class Exchange:
    """A request of the client that is being answered."""

    def __init__(
        self, message: Json, channel: Channel, declared: Declared, options: ProxyOptions
    ) -> None:
        """A message without `method` and `id` stands for the connection itself."""
        self.method: str = message.get("method", "")
        self.id = message.get("id")
        self.params: Json = message.get("params") or {}
        self.declared = declared
        self.key = secrets.token_urlsafe(16)
        self.siblings: list[Exchange] = []
        """The exchanges of the same user, this one included."""
        self.upstream_token: Any = None
        """The progress token of this request to the server."""
        self.rounds = 0
        """How often the server asked for input in the current call."""
        self.on_loss: Callable[[], None] | None = None
        """Called if the client cancels after it got the result of a chain (TC-C-55)."""
        self.context = copy_context()
        """The context of the chain, whose time stands still during questions."""
        self.answered = False
        """Whether the answer was sent, if only in part."""
        self.lost = False
        """Whether the client cancelled after that."""
        self._channel: Channel | None = channel
        self._options = options
        self._scope = anyio.CancelScope()
        self._timer = CallTimer()
        self._questions: dict[str, tuple[anyio.Event, list[Json | MCPError]]] = {}
        """The questions to a client of 2025-11-25, each with its answer."""
        self._round = 0
        self._resumed = anyio.Event()
        self._responses: Json = {}
        """The answers of a client of 2026-07-28 in its latest round."""
        self._before: float = 0
        self._reached: float = 0

    @property
    def meta(self) -> Json:
        """The `_meta` of the client's latest request."""
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}

    @property
    def token(self) -> Any:
        """The client's progress token."""
        return self.meta.get("progressToken")

    @property
    def asking(self) -> int:
        """The number of questions that the client has not answered yet."""
        return self._timer.asking

    @property
    def waits(self) -> bool:
        """Whether the client has questions, and no request of it is open."""
        return self._channel is None

    # --- the work, and its end --------------------------------------------------------------------

    async def run(self, work: Callable[[], Awaitable[Json]]) -> None:
        """Do the work of the request, and answer it. Work that fails is answered with an error."""
        with self._scope, self._span():
            outcome: Json | MCPError
            try:
                outcome = await work()
            except MCPError as error:
                outcome = error
            except Exception:
                logger.exception("%s failed", self.method)
                outcome = MCPError(code=INTERNAL_ERROR, message="The proxy failed.")
            if not self.answered:
                await self.answer(outcome)
        if self._scope.cancelled_caught and not self.answered and self._channel is not None:
            self.answered = True
            with suppress(ClientGone):
                await self._channel.answer(None)

    async def answer(self, outcome: Json | MCPError) -> None:
        """Answer the request. If the client is gone, cancel the work that waits for it."""
        if self.answered:  # The client knows that it did not finish.
            self.cancel()
        await anyio.lowlevel.checkpoint_if_cancelled()
        self.answered = True
        if isinstance(outcome, MCPError):
            get_current_span().set_status(StatusCode.ERROR, outcome.message)
        try:
            if self._channel is None:
                raise ClientGone
            with anyio.fail_after(WRITING):
                await self._channel.answer(outcome)
        except (ClientGone, TimeoutError):
            self.cancel()
            await anyio.lowlevel.checkpoint()

    def cancel(self) -> None:
        """Cancel the work."""
        self._scope.cancel()

    def cancel_for(self, channel: Channel) -> None:
        """Cancel the work if its messages go to this channel, whose client is gone."""
        if self._channel is channel:
            self.cancel()

    @contextmanager
    def _span(self) -> Iterator[None]:
        """Make a span of the request, as the SDK's servers do."""
        name = self.params.get("name")
        title = f"{self.method} {name}" if isinstance(name, str) else self.method
        found = extract({k: v for k, v in self.meta.items() if isinstance(v, str)})
        with _tracer.start_as_current_span(
            title,
            kind=SpanKind.SERVER,
            attributes={"mcp.method.name": self.method},
            context=found if get_current_span(found).get_span_context().is_valid else None,
        ):
            yield

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

    # --- notifications ----------------------------------------------------------------------------

    def carries(self, method: str, params: Json) -> bool:
        """Return whether the client may get a notification without a request id on this request.

        On 2026-07-28 each request has the log level that the client wants, and there is no
        notification for the end of an elicitation.
        """
        if self._channel is None or self.method == "subscriptions/listen":
            return False
        if not self.declared.modern:
            return True
        if method != "notifications/message":
            return method != "notifications/elicitation/complete"
        wanted, level = self.meta.get(LOG_LEVEL_META_KEY), params.get("level")
        return wanted in LEVELS and level in LEVELS[LEVELS.index(wanted) :]

    async def notify(self, method: str, params: Json | None) -> None:
        """Send the client a notification of this request, if its channel is still open."""
        message: Json = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        if self._channel is not None:
            await self._channel.send(message)

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

    # --- questions --------------------------------------------------------------------------------

    async def ask(self, method: str, params: Json | None) -> Json:
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
        if self._channel is None or self._channel.deaf:
            words = self._channel.deaf if self._channel else "The client cannot be asked now."
            raise MCPError(code=INVALID_REQUEST, message=words)
        with self._standing_still():
            if self.declared.modern and self.method:
                return await self._ask_in_rounds(questions)
            return {
                name: await self._ask_now(one["method"], one.get("params"))
                for name, one in questions.items()
            }

    @contextmanager
    def _standing_still(self) -> Iterator[None]:
        """Stop the time limits of the call and of the chain, whoever runs the block."""
        pause = waiting_for_user(handed_out=self.declared.modern)
        with self._timer.paused():
            self.context.run(pause.__enter__)
            try:
                yield
            finally:
                pause.__exit__(None, None, None)

    async def _ask_now(self, method: str, params: Any) -> Json:
        """Send a client of 2025-11-25 a question, and wait for its answer."""
        number = _next_question()
        arrived, answers = self._questions[str(number)] = anyio.Event(), []
        message: Json = {"jsonrpc": "2.0", "id": number, "method": method}
        if params is not None:
            message["params"] = params
        try:
            if self._channel is None:
                raise ClientGone
            await self._channel.send(message)
            with anyio.fail_after(self._options.parked_for):
                await arrived.wait()
        except ClientGone:
            words = "The client is gone and cannot be asked."
            raise MCPError(code=INVALID_REQUEST, message=words) from None
        except (TimeoutError, anyio.get_cancelled_exc_class()) as error:
            with anyio.move_on_after(_WITHDRAWN, shield=True), suppress(ClientGone):
                await self.notify("notifications/cancelled", {"requestId": number})
            if isinstance(error, TimeoutError):
                words = f"Nobody answered within {self._options.parked_for:g} s."
                raise MCPError(code=REQUEST_TIMEOUT, message=words) from None
            raise
        finally:
            del self._questions[str(number)]
        [answer] = answers
        if isinstance(answer, MCPError):
            raise answer
        return answer

    def take_answer(self, message: Json) -> bool:
        """Take the client's answer to a question, if it is one of this request's."""
        found = self._questions.get(str(message.get("id")))
        if found is None:
            return False
        arrived, answers = found
        if not answers:
            result, error = message.get("result"), message.get("error")
            if isinstance(result, dict):
                answers.append(result)
            else:
                answers.append(_error_of(error))
            arrived.set()
        return True

    def give_up_asking(self, words: str) -> None:
        """End every open question, because nobody can answer it any more."""
        for arrived, answers in self._questions.values():
            answers.append(MCPError(code=INVALID_REQUEST, message=words))
            arrived.set()

    # --- rounds -----------------------------------------------------------------------------------

    async def _ask_in_rounds(self, questions: Mapping[str, Any]) -> Json:
        """Answer the client's request with the questions, until it comes back with all answers."""
        answers: Json = {}
        while questions.keys() - answers:
            channel, waiting = self._channel, sum(one.waits for one in self.siblings)
            if waiting >= self._options.max_parked or channel is None:
                words = f"{waiting} calls already wait for their user. Answer one of them first."
                raise MCPError(code=INTERNAL_ERROR, message=words)
            self._channel, self._resumed = None, anyio.Event()
            self._scope.deadline = anyio.current_time() + self._options.parked_for
            interim = {
                "resultType": "input_required",
                "inputRequests": {k: one for k, one in questions.items() if k not in answers},
                "requestState": self._state,
            }
            try:
                await channel.answer(interim)
            except ClientGone:
                self.cancel()
            await self._resumed.wait()
            for name in questions.keys() & self._responses.keys():
                if isinstance(self._responses[name], dict):
                    answers.setdefault(name, self._responses[name])
        return answers

    def resume(self, message: Json, channel: Channel) -> None:
        """Take the answers of a later round. Raises MCPError if they answer no open question."""
        params = message.get("params") or {}
        is_ours = params.get("requestState") == self._state and all(
            params.get(name) == self.params.get(name) for name in ("name", "uri", "arguments")
        )
        if self._channel is not None or not is_ours or message["method"] != self.method:
            raise not_waiting()
        self.id, self.params, self._channel = message["id"], params, channel
        self._round += 1
        self._scope.deadline = float("inf")
        responses = params.get("inputResponses")
        self._responses = responses if isinstance(responses, dict) else {}
        self._resumed.set()

    @property
    def _state(self) -> str:
        return f"{self.key}.{self._round}"

    def _check(self, question: Any) -> None:
        """Raise MCPError for a question that the client cannot answer, as such a client does."""
        if not isinstance(question, Mapping) or not isinstance(question.get("method"), str):
            raise MCPError(code=INVALID_REQUEST, message="The server's question is not a request.")
        method = question["method"]
        if method not in _CAPABILITY_OF:
            if self.declared.modern:
                raise MCPError(code=METHOD_NOT_FOUND, message="Method not found", data=method)
            return
        capability, feature = _CAPABILITY_OF[method]
        declared: Any = self.declared.capabilities.get(capability)
        can = isinstance(declared, Mapping)
        if can and capability == "elicitation":
            # Without a mode, both sides mean forms.
            modes = [mode for mode in ("form", "url") if mode in declared] or ["form"]
            params = question.get("params")
            can = (params.get("mode", "form") if isinstance(params, Mapping) else "form") in modes
        if not can:
            raise MCPError(code=INVALID_REQUEST, message=f"{feature} not supported")


def not_waiting() -> MCPError:
    """Return the error for an answer whose question was already answered or cancelled."""
    return MCPError(
        code=INVALID_PARAMS,
        message="No question waits for this answer any more. Make the call again.",
    )


def _error_of(error: Any) -> MCPError:
    """Return the error with which a client answers a question."""
    members = error if isinstance(error, dict) else {}
    code, words = members.get("code"), members.get("message")
    return MCPError(
        code=code if isinstance(code, int) else INTERNAL_ERROR,
        message=words if isinstance(words, str) else "The client's answer cannot be read.",
        data=members.get("data"),
    )
