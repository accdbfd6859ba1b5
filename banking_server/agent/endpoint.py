"""The model: any OpenAI-compatible chat endpoint, through the `openai` client.

    async with Endpoint(load_model_settings()) as endpoint:
        completion = await endpoint.complete([{"role": "user", "content": "Hello"}])

The client makes the requests, with time-outs and bounded retries. What it hands back is checked
here, since it takes an endpoint at its word. It is imported where it is used: it is slow to import,
and it is there only if the extra `model` is installed.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlsplit

import httpx2
from pydantic import BaseModel, Field, ValidationError, field_validator

from banking_server.agent.settings import ModelSettings
from banking_server.chaining.transport import ResilientHttpClient

Message = dict[str, Any]
"""A message of the conversation, as JSON."""

MAX_REPLY: Final = 100_000
"""Characters of one reply; a model that has not stopped by then is cut off."""

MAX_CALLS: Final = 10
"""Calls of one reply in the endpoint's own form; a model that asks for more is cut off."""

RETRIES: Final = 2
"""How often a request is repeated that timed out, or met 429 or 5xx."""

CHARACTERS_PER_TOKEN: Final = 4
"""For an estimate where the endpoint does not count."""


class ModelUnavailable(Exception):
    """The model gave no reply that can be used; the message is one line for people."""


class RequestRejected(ModelUnavailable):
    """The endpoint answered with an error that another form of request may not meet."""


@dataclass(frozen=True)
class Usage:
    """Tokens that a reply cost."""

    prompt_tokens: int
    completion_tokens: int
    estimated: bool = False
    """The endpoint did not say, so that these are guesses from the number of characters."""

    @property
    def total(self) -> int:
        """Prompt and completion together."""
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True)
class NativeCall:
    """A tool call in the endpoint's own form."""

    call_id: str
    name: str
    arguments: str
    """JSON text, as the model wrote it: it may be anything."""


@dataclass(frozen=True)
class Completion:
    """One reply of the model."""

    text: str
    calls: tuple[NativeCall, ...]
    usage: Usage
    seconds: float
    """From the request to the end of the reply, retries included."""
    cut_off: bool = False
    """The reply ended at a length limit, not where the model wanted to."""


OnText = Callable[[str], None]


class Endpoint:
    """A chat endpoint; an async context manager that holds its connections.

    Raises ImportError if the client is not installed; `load_model_settings` says so in words.
    """

    def __init__(self, settings: ModelSettings) -> None:
        import openai

        self.settings = settings
        self.model = settings.name
        self.constrains = True
        """Whether a reply can be held to a JSON schema; False once a request for it was rejected
        that was good without."""
        self._key = settings.key.get_secret_value() if settings.key else ""
        self._client = openai.AsyncOpenAI(
            base_url=settings.url,
            # The client insists on a key; endpoints that ask for none ignore it.
            api_key=self._key or "none",
            timeout=openai.Timeout(settings.timeout, connect=min(settings.timeout, 10)),
            max_retries=RETRIES,
            # It follows no redirect, so that neither the key nor the conversation goes elsewhere.
            http_client=ResilientHttpClient(),
        )
        # The client takes these from the environment, and they are OpenAI's business alone.
        self._client.organization = None
        self._client.project = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._client.close()

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        functions: Sequence[dict[str, Any]] = (),
        schema: Mapping[str, Any] | None = None,
        on_text: OnText | None = None,
    ) -> Completion:
        """Ask for the next message of a conversation.

        If the endpoint rejects a request for a constrained reply, it is asked once more without
        the schema, and from then on never again if that helps.

        Args:
            messages: The conversation so far.
            functions: Tools for the endpoint's own tool calling; none for the prompt form.
            schema: What the endpoint is asked to hold the reply to (`response_format`).
            on_text: Told of each piece of text as it comes; without it nothing is streamed.

        Raises:
            ModelUnavailable: There is no reply that can be used.
        """
        request: dict[str, Any] = {"model": self.model, "messages": list(messages)}
        if functions:
            request["tools"] = list(functions)
        if self.settings.temperature is not None:
            request["temperature"] = self.settings.temperature
        if schema is None or not self.constrains:
            return await self._complete(request, on_text)
        held = {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}}
        try:
            return await self._complete({**request, "response_format": held}, on_text)
        except RequestRejected as rejected:
            try:
                completion = await self._complete(request, on_text)
            except ModelUnavailable:
                raise rejected from None
            self.constrains = False
            return completion

    async def _complete(self, request: dict[str, Any], on_text: OnText | None) -> Completion:
        import openai

        began = time.monotonic()
        reply = _Reply()
        try:
            request = _sendable(request)
            if on_text is None:
                reply.add(_Body.read(await self._client.chat.completions.create(**request)))
                if reply.finish_reason is None and not reply.text and not reply.calls:
                    raise _NoCompletion("the answer holds no message")
            else:
                await self._stream(request, reply, on_text)
        # The last four are what an answer that is no chat completion does to the client.
        except (
            *(openai.OpenAIError, httpx2.SSEError),
            *(ValueError, TypeError, AttributeError, RuntimeError),
        ) as e:
            raise self._unavailable(e) from e
        return Completion(
            text=reply.text,
            calls=tuple(reply.native_calls()),
            usage=reply.usage or _estimate(request, reply),
            seconds=time.monotonic() - began,
            cut_off=reply.finish_reason == "length",
        )

    async def _stream(self, request: dict[str, Any], reply: "_Reply", on_text: OnText) -> None:
        stream = await self._client.chat.completions.create(
            **request, stream=True, stream_options={"include_usage": True}
        )
        async with stream:
            async for chunk in stream:
                if piece := reply.add(_Body.read(chunk)):
                    on_text(piece)
                if reply.full:
                    break
        if reply.finish_reason is None:
            raise _NoCompletion("the reply broke off in the middle")

    def _unavailable(self, error: Exception) -> ModelUnavailable:
        """Return what went wrong, in one line for people, without the key."""
        import openai

        parts = urlsplit(self.settings.url)
        place = f"The model endpoint at {parts.hostname}" + (f":{parts.port}" if parts.port else "")
        kind: type[ModelUnavailable] = ModelUnavailable
        match error:
            case openai.APITimeoutError():
                words = f"did not answer within {self.settings.timeout:g} seconds"
            case openai.APIConnectionError():
                words = f"cannot be reached, or hung up: {error.__cause__ or error}"
            case openai.APIStatusError(status_code=(401 | 403) as status):
                words = f"refuses the key (HTTP {status}); set BANKING_MODEL_KEY: {error}"
            case openai.RateLimitError():
                words = f"has too much to do (HTTP 429); try again later: {error}"
            case openai.NotFoundError():
                words = (
                    f"knows no such address or no model {self.model!r} (HTTP 404); "
                    f"BANKING_MODEL_URL mostly ends in /v1: {error}"
                )
            case openai.APIStatusError():
                kind = RequestRejected
                words = f"answered HTTP {error.status_code}: {error}"
            case openai.APIError():
                words = f"broke off with an error: {error}"
            case json.JSONDecodeError():
                words = "answered with broken JSON"
            case _NoCompletion() | httpx2.StreamError() | httpx2.SSEError():
                words = f"gave no usable reply: {error}"
            case _:
                words = "answered with something that is no chat completion"
        line = " ".join(f"{place} {words}".split())
        if self._key:
            line = line.replace(self._key, "***")
        return kind(line[:400].rstrip(".") + ".")


class _NoCompletion(ValueError):
    """The answer is JSON, but no chat completion."""


class _Function(BaseModel):
    name: str | None = None
    arguments: str | None = None

    @field_validator("arguments", mode="before")
    @classmethod
    def _as_text(cls, value: Any) -> Any:
        """Some endpoints send the arguments as an object, not as its text."""
        return json.dumps(value) if isinstance(value, dict) else value


class _ToolCall(BaseModel):
    index: int | None = None
    id: str | None = None
    function: _Function = Field(default_factory=_Function)


class _Message(BaseModel):
    content: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(BaseModel):
    message: _Message | None = None
    delta: _Message | None = None
    finish_reason: str | None = None


class _Counts(BaseModel):
    prompt_tokens: int = Field(ge=0, le=10**12)
    completion_tokens: int = Field(ge=0, le=10**12)


class _Body(BaseModel):
    """What is read of a completion, or of a chunk of one."""

    choices: list[_Choice]
    usage: _Counts | None = None

    @classmethod
    def read(cls, answer: Any) -> Self:
        """Read what the client made of an answer. Raises _NoCompletion."""
        if isinstance(answer, BaseModel):
            answer = answer.model_dump(by_alias=True, exclude_unset=True, warnings=False)
        if isinstance(answer, dict) and answer.get("error"):
            raise _NoCompletion(f"it says {json.dumps(answer['error'], default=str)[:200]}")
        try:
            return cls.model_validate(answer)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(map(str, first["loc"])) or "the answer"
            raise _NoCompletion(f"{place}: {first['msg']}") from error


class _Reply:
    """A reply that is put together from one body, or from many."""

    def __init__(self) -> None:
        self.text = ""
        self.calls: list[_ToolCall] = []
        self.usage: Usage | None = None
        self.finish_reason: str | None = None
        self._parts = 0

    @property
    def size(self) -> int:
        """The characters of its text and of its calls."""
        called = [(call.function.name, call.function.arguments) for call in self.calls]
        return len(self.text) + sum(len(part or "") for each in called for part in each)

    @property
    def full(self) -> bool:
        """Whether no more of it is read; a stream of nothing has many parts."""
        return max(self.size, self._parts) > MAX_REPLY or len(self.calls) > MAX_CALLS

    def add(self, body: _Body) -> str:
        """Add what a body holds; return its text."""
        self._parts += 1
        if body.usage is not None:
            self.usage = Usage(body.usage.prompt_tokens, body.usage.completion_tokens)
        if not body.choices:
            return ""
        choice = body.choices[0]
        self.finish_reason = choice.finish_reason or self.finish_reason
        message = choice.message or choice.delta or _Message()
        for call in (message.tool_calls or [])[: MAX_CALLS + 1]:
            self._add_call(call)
        piece = (message.content or "")[: MAX_REPLY + 1 - len(self.text)]
        self.text += piece
        if self.full:
            self.finish_reason = "length"
        return piece

    def _add_call(self, piece: _ToolCall) -> None:
        """Add a call, or a further piece of one: a piece has its index, and no id of its own."""
        for known in reversed(self.calls):
            same = piece.index is not None and known.index == piece.index
            if same and piece.id in (None, "", known.id):
                function = known.function
                function.name = function.name or piece.function.name
                function.arguments = (function.arguments or "") + (piece.function.arguments or "")
                return
        self.calls.append(piece)

    def native_calls(self) -> list[NativeCall]:
        """Return the calls, each with an id of its own."""
        calls: list[NativeCall] = []
        for number, call in enumerate(self.calls[:MAX_CALLS], start=1):
            taken = {one.call_id for one in calls}
            call_id = call.id if call.id and call.id not in taken else f"call_{number}"
            function = call.function
            calls.append(NativeCall(call_id, function.name or "", function.arguments or ""))
        return calls


def _sendable(request: dict[str, Any]) -> dict[str, Any]:
    """Return a request without halves of surrogate pairs, with which no request could be sent."""
    text = json.dumps(request, ensure_ascii=False)
    sendable: dict[str, Any] = json.loads(
        text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    )
    return sendable


def _estimate(request: dict[str, Any], reply: _Reply) -> Usage:
    sent = len(json.dumps(request, ensure_ascii=False))
    prompt, completion = (-(-size // CHARACTERS_PER_TOKEN) for size in (sent, reply.size))
    return Usage(prompt, completion, estimated=True)
