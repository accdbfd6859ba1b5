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
            on_text: Told of each piece of text as it comes; without it nothing is streamed. A reply
                to a request with functions comes in one piece.

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
        request = _sendable(request)
        try:
            if on_text is None or "tools" in request:
                reply.add(await self._client.chat.completions.create(**request), on_text)
            else:
                await self._stream(request, reply, on_text)
            if reply.finish_reason is None and not (reply.text or reply.calls):
                raise _NoCompletion("the answer holds no message")
        # The last ones are what an answer that is no chat completion does to its reader.
        except (
            *(openai.OpenAIError, httpx2.SSEError),
            *(ValueError, TypeError, AttributeError, LookupError, RuntimeError),
        ) as e:
            raise self._unavailable(e) from e
        return Completion(
            text=reply.text,
            calls=tuple(reply.calls),
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
                reply.add(chunk, on_text)
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
            case openai.APIStatusError(status_code=status):
                advice = _ADVICE.get(status)
                kind = ModelUnavailable if advice else RequestRejected
                words = f"answered HTTP {status}: {error}{f'; {advice}' if advice else ''}"
            case openai.APIError() | _NoCompletion() | httpx2.StreamError() | httpx2.SSEError():
                words = f"gave no usable reply: {error}"
            case _:
                words = "answered with something that is no chat completion"
        line = " ".join(f"{place} {words}".split())
        if self._key:
            line = line.replace(self._key, "***")
        return kind(line[:400].rstrip(".") + ".")


_ADVICE: Final = {
    401: "set BANKING_MODEL_KEY",
    403: "set BANKING_MODEL_KEY",
    404: "set BANKING_MODEL_NAME, and BANKING_MODEL_URL, which mostly ends in /v1",
    429: "try again later",
}
"""What to do about an HTTP status that no other form of request would change."""


class _NoCompletion(ValueError):
    """The answer is JSON, but no chat completion."""


class _Reply:
    """A reply that is put together from one body, or from many."""

    def __init__(self) -> None:
        self.text = ""
        self.calls: list[NativeCall] = []
        self.usage: Usage | None = None
        self.finish_reason: str | None = None
        self._parts = 0

    @property
    def full(self) -> bool:
        """Whether no more of it is read; a stream of nothing has many parts."""
        return max(len(self.text), self._parts) > MAX_REPLY

    def add(self, body: Any, on_text: OnText | None) -> None:
        """Add what a body holds, or a chunk. What is no completion raises some error or other."""
        self._parts += 1
        answer = body.model_dump(by_alias=True, exclude_unset=True, warnings=False)
        if answer.get("error"):
            raise _NoCompletion(f"it says {json.dumps(answer['error'], default=str)[:200]}")
        if usage := answer.get("usage"):
            self.usage = Usage(int(usage["prompt_tokens"]), int(usage["completion_tokens"]))
        if not answer["choices"]:
            return
        choice = answer["choices"][0]
        self.finish_reason = choice.get("finish_reason") or self.finish_reason
        message = choice.get("message") or choice.get("delta") or {}
        piece = message.get("content") or ""
        if not isinstance(piece, str):
            raise _NoCompletion("the content of its message is no text")
        piece = piece[: MAX_REPLY + 1 - len(self.text)]
        self.text += piece
        calls = message.get("tool_calls") or []
        for number, call in enumerate(calls[:MAX_CALLS], start=1):
            self._add_call(call, f"call_{number}")
        if self.full or len(calls) > MAX_CALLS:
            self.finish_reason = "length"
        if piece and on_text is not None:
            on_text(piece)

    def _add_call(self, call: dict[str, Any], otherwise: str) -> None:
        """Add a call, with an id of its own. Some endpoints send its arguments as an object."""
        name, arguments = (call["function"].get(part) or "" for part in ("name", "arguments"))
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        call_id = str(call.get("id") or otherwise)
        if call_id in {one.call_id for one in self.calls}:
            call_id = otherwise
        self.calls.append(NativeCall(call_id, str(name), text[:MAX_REPLY]))


def _sendable(request: dict[str, Any]) -> dict[str, Any]:
    """Return a request without halves of surrogate pairs, with which no request could be sent."""
    text = json.dumps(request, ensure_ascii=False)
    sendable: dict[str, Any] = json.loads(
        text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    )
    return sendable


def _estimate(request: dict[str, Any], reply: _Reply) -> Usage:
    sent, came = len(json.dumps(request)), len(json.dumps([reply.text, reply.calls], default=str))
    return Usage(sent // CHARACTERS_PER_TOKEN, came // CHARACTERS_PER_TOKEN, estimated=True)
