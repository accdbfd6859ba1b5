"""The model: any OpenAI-compatible chat endpoint, through the `openai` client.

    async with Endpoint(load_model_settings()) as endpoint:
        completion = await endpoint.complete([{"role": "user", "content": "Hello"}])

The client makes the requests, with time-outs and bounded retries. It is imported where it is used:
it is slow to import, and it is there only if the extra `model` is installed.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self
from urllib.parse import urlsplit

import httpx2

from banking_server.agent.settings import ModelSettings
from banking_server.chaining.transport import ResilientHttpClient

Message = dict[str, Any]
"""A message of the conversation, as JSON."""

MAX_REPLY: Final = 100_000
"""Characters of one reply; a model that has not stopped by then is cut off."""

RETRIES: Final = 2
"""How often a request is repeated that timed out, or met 429 or 5xx."""


class ModelUnavailable(Exception):
    """The model gave no reply that can be used; the message is one line for people."""


class RequestRejected(ModelUnavailable):
    """The endpoint answered with an error that another form of request may not meet."""


@dataclass(frozen=True)
class Usage:
    """Tokens that a reply cost, as the endpoint counts them; 0 if it does not count."""

    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True)
class Completion:
    """One reply of the model."""

    text: str
    calls: list[Message]
    """Tool calls in the endpoint's own form; the arguments are JSON text, and may be anything."""
    usage: Usage
    seconds: float
    """From the request to the end of the reply, retries included."""
    cut_off: bool = False
    """The reply ended at a length limit, not where the model wanted to."""


OnText = Callable[[str], None]
"""Told the text of a reply as far as it is there, whenever more of it has come."""


class Endpoint:
    """A chat endpoint; an async context manager that holds its connections.

    Raises ImportError if the client is not installed; `load_model_settings` says so in words.
    """

    def __init__(self, settings: ModelSettings) -> None:
        import openai

        self.settings = settings
        self.model = settings.name
        self._place = urlsplit(settings.url).netloc.rpartition("@")[2]
        self.constrains = True
        """Whether a reply can be held to a JSON schema, as far as is known."""
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

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
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

        `functions` are tools for the endpoint's own tool calling. `schema` is what the endpoint is
        asked to hold the reply to; if it rejects that, it is asked without, and from then on never
        again. With `on_text` the reply is streamed, unless there are functions.

        Raises ModelUnavailable.
        """
        request: dict[str, Any] = {"model": self.model, "messages": list(messages)}
        if functions:
            request["tools"] = list(functions)
        if self.settings.temperature is not None:
            request["temperature"] = self.settings.temperature
        if schema is not None and self.constrains:
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
        return await self._complete(request, on_text)

    async def _complete(self, request: dict[str, Any], on_text: OnText | None) -> Completion:
        import openai

        began = time.monotonic()
        # Halves of surrogate pairs, which a model can write, cannot be sent.
        sent = json.dumps(request, ensure_ascii=False).encode("utf-16", "surrogatepass")
        request = json.loads(sent.decode("utf-16", "replace"))
        create, reply = self._client.chat.completions.create, _Reply()
        try:
            if on_text is None or "tools" in request:
                answer = await create(**request)
                reply.add(answer.choices[0], answer.choices[0].message, answer.usage)
            else:
                request |= {"stream": True, "stream_options": {"include_usage": True}}
                async with await create(**request) as stream:
                    async for chunk in stream:
                        choice = chunk.choices[0] if chunk.choices else None
                        reply.add(choice, choice and choice.delta, chunk.usage)
                        on_text(reply.text)
                        if reply.cut_off:
                            break
                if reply.finish_reason is None:
                    raise openai.OpenAIError("it broke off in the middle")
        except (openai.OpenAIError, httpx2.SSEError, httpx2.StreamError) as error:
            raise self._unavailable(error) from error
        except (ValueError, TypeError, AttributeError, LookupError, RuntimeError) as error:
            # The client takes an endpoint at its word: this is what another answer comes to.
            what = openai.OpenAIError("it is no chat completion")
            raise self._unavailable(what) from error
        seconds = time.monotonic() - began
        return Completion(reply.text, reply.calls, reply.usage, seconds, reply.cut_off)

    def _unavailable(self, error: Exception) -> ModelUnavailable:
        """Return what went wrong, in one line for people, without the key."""
        import openai

        kind: type[ModelUnavailable] = ModelUnavailable
        match error:
            case openai.APITimeoutError():
                words = f"did not answer within {self.settings.timeout:g} seconds"
            case openai.APIConnectionError():
                words = f"cannot be reached, or hung up: {error.__cause__ or error}"
            case openai.APIStatusError(status_code=status):
                kind = ModelUnavailable if status in _ADVICE else RequestRejected
                words = f"answered HTTP {status}: {error}; {_ADVICE.get(status, '')}"
            case _:
                words = f"gave no usable reply: {error}"
        line = " ".join(f"The model endpoint at {self._place} {words}".split())
        if self._key:
            line = line.replace(self._key, "***")
        return kind(line[:400].rstrip(".; ") + ".")


_ADVICE: Final = {
    401: "set BANKING_MODEL_KEY",
    403: "set BANKING_MODEL_KEY",
    404: "set BANKING_MODEL_NAME, and BANKING_MODEL_URL, which mostly ends in /v1",
    429: "try again later",
}
"""What to do about an HTTP status that no other form of request would change."""


class _Reply:
    """A reply that is put together from one message, or from the pieces of a stream."""

    def __init__(self) -> None:
        self.text = ""
        self.calls: list[Message] = []
        self.usage = Usage()
        self.finish_reason: str | None = None

    @property
    def cut_off(self) -> bool:
        return self.finish_reason == "length"

    def add(self, choice: Any, message: Any, usage: Any) -> None:
        """Add a message, or a piece of one; raises one of many errors if it is none."""
        if usage:
            self.usage = Usage(int(usage.prompt_tokens), int(usage.completion_tokens))
        if choice is None:
            return
        self.text = (self.text + (message.content or ""))[: MAX_REPLY + 1]
        self.finish_reason = choice.finish_reason or self.finish_reason
        if len(self.text) > MAX_REPLY:
            self.finish_reason = "length"
        for number, call in enumerate(message.tool_calls or [], start=1):
            arguments = call.function.arguments or "{}"
            # Some endpoints send them as an object, and some send no id.
            text = arguments if isinstance(arguments, str) else json.dumps(arguments)
            call_id = str(getattr(call, "id", None) or f"call_{number}")
            function = {"name": str(call.function.name), "arguments": text}
            self.calls.append({"id": call_id, "type": "function", "function": function})
