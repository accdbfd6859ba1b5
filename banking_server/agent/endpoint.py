"""The model: any OpenAI-compatible chat endpoint, through the `openai` client.

    async with Endpoint(load_model_settings()) as endpoint:
        completion = await endpoint.complete([{"role": "user", "content": "Hello"}])

The client does the requests, the time-outs and the bounded retries, `Retry-After` included.
What it hands back is checked here, since it takes an endpoint at its word. It is imported where it
is used: it is slow to import, and there only if the extra `model` is installed.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Self
from urllib.parse import urlsplit

import httpx2
from pydantic import BaseModel, Field, ValidationError, field_validator

from banking_server.agent.settings import ModelSettings
from banking_server.chaining.transport import ResilientHttpClient

if TYPE_CHECKING:
    import openai

Message = dict[str, Any]
"""A message of the conversation, as JSON."""

MAX_REPLY: Final = 100_000
"""Characters of one reply, and its parts; a model that has not stopped by then is cut off."""

RETRIES: Final = 2
"""How often a request is repeated that timed out, or met 429 or 5xx."""

MAX_CALLS: Final = 100
"""Calls of one reply that are read; a model that asks for more is cut off."""

MAX_COUNT: Final = 10**12
"""Tokens that an endpoint can have counted."""

CHARACTERS_PER_TOKEN: Final = 4
"""For an estimate where the endpoint does not count."""

PROBED: Final = 500
"""Characters after which a reply that is to show how replies are constrained is cut off."""

Format = Literal["json_schema", "json_object", "none"]
"""How an endpoint is asked to hold a reply to a JSON schema."""

READY: Final[dict[str, Any]] = {
    "type": "function",
    "function": {
        "name": "ready",
        "description": "Say that you are ready.",
        "parameters": {"type": "object", "properties": {}},
    },
}


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
    cached_tokens: int | None = None
    """Of the prompt, what the endpoint had in its cache; None if it does not say."""

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


_RESPONSE_FORMAT: Final[dict[str | None, Callable[[Mapping[str, Any]], dict[str, Any]]]] = {
    "json_schema": lambda schema: {
        "type": "json_schema",
        "json_schema": {"name": "reply", "schema": schema},
    },
    "json_object": lambda schema: {"type": "json_object", "schema": schema},
}

_NONSENSE: Final = (ValueError, TypeError, AttributeError, RuntimeError)
"""What an answer that is no chat completion does to the client."""

OnText = Callable[[str], None]
OnRetry = Callable[[float], None]


class Endpoint:
    """A chat endpoint; an async context manager that holds its connections.

    `on_retry` is told of the seconds that are waited before a request that failed is made again.
    Raises ImportError if the client is not installed; `load_model_settings` says so in words.
    """

    def __init__(self, settings: ModelSettings, *, on_retry: OnRetry | None = None) -> None:
        import openai

        self.settings = settings
        self.model = settings.name
        self.native: bool | None = None if settings.tools == "auto" else settings.tools == "native"
        """Whether tools are given by its own tool calling; None as long as nobody knows."""
        self.format: Format | None = None if settings.format == "auto" else settings.format
        """How replies are constrained; None as long as nobody knows."""
        key = settings.key.get_secret_value() if settings.key else ""
        self._key = key
        self._client = _client_class(on_retry)(
            base_url=settings.url,
            # The client insists on a key; endpoints that ask for none ignore it.
            api_key=key or "none",
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
        limit: int | None = None,
    ) -> Completion:
        """Ask for the next message of a conversation.

        If the endpoint rejects the form of reply that it was found to understand, it is asked once
        more without, and from then on if that helps.

        Args:
            messages: The conversation so far.
            functions: Tools for the endpoint's own tool calling; none for the prompt form.
            schema: What the reply is held to, if `format` says that the endpoint can.
            on_text: Told of each piece of text as it comes; without it nothing is streamed.
            limit: Characters after which a streamed reply is cut off; by default `MAX_REPLY`.

        Raises:
            ModelUnavailable: There is no reply that can be used.
        """
        try:
            return await self._complete(messages, functions, schema, on_text, limit)
        except RequestRejected:
            found, probing = self.format, limit is not None
            if schema is None or self.settings.format != "auto" or found == "none" or probing:
                raise
            self.format = "none"
            try:
                return await self._complete(messages, functions, schema, on_text, limit)
            except ModelUnavailable:
                self.format = found
                raise

    async def _complete(
        self,
        messages: Sequence[Message],
        functions: Sequence[dict[str, Any]],
        schema: Mapping[str, Any] | None,
        on_text: OnText | None,
        limit: int | None,
    ) -> Completion:
        import openai

        began = time.monotonic()
        request: dict[str, Any] = {"model": self.model, "messages": list(messages)}
        if functions:
            request["tools"] = list(functions)
        if schema is not None and self.format in _RESPONSE_FORMAT:
            request["response_format"] = _RESPONSE_FORMAT[self.format](schema)
        if self.settings.temperature is not None:
            request["temperature"] = self.settings.temperature
        try:
            request = _sendable(request)
            if on_text is None:
                reply = await self._at_once(request)
            else:
                reply = await self._streamed(request, on_text, limit)
        except (openai.OpenAIError, httpx2.SSEError, *_NONSENSE) as e:
            raise self._unavailable(e) from e
        return Completion(
            text=reply.text,
            calls=tuple(reply.native_calls()),
            usage=reply.usage or _estimate(request, reply),
            seconds=time.monotonic() - began,
            cut_off=reply.finish_reason == "length",
        )

    async def find_native(self) -> Completion | None:
        """Find out whether the model calls tools natively, by asking it to call one.

        Sets `native`. Returns the reply, or None where the endpoint rejects requests with tools.
        Raises ModelUnavailable where it cannot be reached at all.
        """
        message = {"role": "user", "content": "Call the tool `ready` now."}
        try:
            completion = await self.complete([message], functions=[READY])
        except RequestRejected:
            self.native = False
            return None
        self.native = any(call.name == "ready" for call in completion.calls)
        return completion

    async def find_format(
        self, schema: Mapping[str, Any], fits: Callable[[str], bool]
    ) -> list[Completion]:
        """Find out how the endpoint holds replies to `schema`: by what comes back, if anything.

        The model is asked for a word that does not fit. Some endpoints reject a format, some take
        no notice of it, and some make any JSON of a schema that they do not understand; so a format
        is good if the reply `fits`. Sets `format`, and returns the replies. Raises ModelUnavailable
        where the endpoint cannot be reached at all.
        """
        message = {"role": "user", "content": "Reply with the word hello, and nothing else."}
        came: list[Completion] = []
        for self.format in ("json_schema", "json_object"):
            try:
                completion = await self.complete(
                    [message], schema=schema, on_text=lambda _: None, limit=PROBED
                )
            except RequestRejected:
                continue
            except ModelUnavailable:
                self.format = None
                raise
            came.append(completion)
            if fits(completion.text):
                return came
        self.format = "none"
        return came

    async def _at_once(self, request: dict[str, Any]) -> "_Reply":
        reply = _Reply()
        reply.add(_Body.read(await self._client.chat.completions.create(**request)))
        if reply.finish_reason is None and not reply.text and not reply.calls:
            raise _NoCompletion("the answer holds no message")
        return reply

    async def _streamed(
        self, request: dict[str, Any], on_text: OnText, limit: int | None
    ) -> "_Reply":
        reply = _Reply(limit)
        stream = await self._client.chat.completions.create(
            **request, stream=True, stream_options={"include_usage": True}
        )
        async with stream:
            async for chunk in stream:
                piece = reply.add(_Body.read(chunk))
                if piece:
                    on_text(piece)
                if reply.full:
                    break
        if reply.finish_reason is None:
            raise _NoCompletion("the reply broke off in the middle")
        return reply

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
                wait = error.response.headers.get("retry-after")
                words = "has too much to do (HTTP 429)"
                words += f" and asks to wait {wait} seconds" if wait else ""
                words += f": {error}"
            case openai.NotFoundError():
                kind = RequestRejected
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


def _client_class(on_retry: OnRetry | None) -> "type[openai.AsyncOpenAI]":
    """Return the class of the client: it tells nobody itself that it waits, and how long."""
    import openai

    class Telling(openai.AsyncOpenAI):
        def _calculate_retry_timeout(self, *args: Any, **options: Any) -> float:
            seconds = super()._calculate_retry_timeout(*args, **options)
            if on_retry is not None:
                on_retry(seconds)
            return seconds

    return Telling


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
    prompt_tokens: int = Field(ge=0, le=MAX_COUNT)
    completion_tokens: int = Field(ge=0, le=MAX_COUNT)
    prompt_tokens_details: Any = None

    @property
    def cached_tokens(self) -> int | None:
        """What was in the endpoint's cache; None if it does not say, or cannot be so."""
        details = self.prompt_tokens_details
        cached = details.get("cached_tokens") if isinstance(details, dict) else None
        fits = type(cached) is int and 0 <= cached <= self.prompt_tokens
        return cached if fits else None


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

    def __init__(self, limit: int | None = None) -> None:
        self.limit = MAX_REPLY if limit is None else limit
        self.pieces: list[str] = []
        self.size = self.parts = 0
        self.calls: list[_ToolCall] = []
        self.usage: Usage | None = None
        self.finish_reason: str | None = None

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def full(self) -> bool:
        """Whether no more of it is read."""
        # A stream of nothing has many parts.
        return max(self.size, self.parts) > self.limit or len(self.calls) > MAX_CALLS

    def add(self, body: _Body) -> str:
        """Add what a body holds; return its text."""
        if body.usage is not None:
            self.usage = Usage(
                body.usage.prompt_tokens,
                body.usage.completion_tokens,
                cached_tokens=body.usage.cached_tokens,
            )
        if not body.choices:
            return ""
        choice = body.choices[0]
        self.finish_reason = choice.finish_reason or self.finish_reason
        message = choice.message or choice.delta or _Message()
        for call in islice(message.tool_calls or (), MAX_CALLS + 1):
            self._add_call(call)
        text = (message.content or "")[: self.limit + 1 - self.size]
        self.pieces.append(text)
        self.size += len(text)
        self.parts += 1
        if self.full:
            self.finish_reason = "length"
        return text

    def _add_call(self, piece: _ToolCall) -> None:
        """Add a call, or a further piece of one: a piece has its index, and no id of its own."""
        function = piece.function
        self.size += len(function.name or "") + len(function.arguments or "")
        known = next(
            (
                call
                for call in reversed(self.calls)
                if piece.index is not None
                and call.index == piece.index
                and piece.id in (None, "", call.id)
            ),
            None,
        )
        if known is None:
            self.calls.append(piece)
            return
        known.function.name = known.function.name or function.name
        known.function.arguments = f"{known.function.arguments or ''}{function.arguments or ''}"

    def native_calls(self) -> list[NativeCall]:
        """Return the calls, each with an id of its own."""
        calls: list[NativeCall] = []
        taken: set[str] = set()
        for number, call in enumerate(self.calls[:MAX_CALLS], start=1):
            call_id = call.id if call.id and call.id not in taken else f"call_{number}"
            taken.add(call_id)
            function = call.function
            calls.append(NativeCall(call_id, function.name or "", function.arguments or ""))
        return calls


def _sendable(request: dict[str, Any]) -> dict[str, Any]:
    """Return a request without half characters: with one in it, no request could ever be sent.

    A model can write one, in two halves or in one, and whoever has typed or sent what is in here.
    """
    text = json.dumps(request, ensure_ascii=False)
    sendable: dict[str, Any] = json.loads(
        text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    )
    return sendable


def _estimate(request: dict[str, Any], reply: _Reply) -> Usage:
    return Usage(
        prompt_tokens=_tokens(len(json.dumps(request, ensure_ascii=False))),
        completion_tokens=_tokens(reply.size),
        estimated=True,
    )


def _tokens(characters: int) -> int:
    return -(-characters // CHARACTERS_PER_TOKEN)
