"""The model: any OpenAI-compatible chat endpoint, through the `openai` client.

    async with Endpoint(load_model_settings()) as endpoint:
        completion = await endpoint.complete([{"role": "user", "content": "Hello"}])

The client is imported where it is used: it is slow to import, and it is there only if the extra
`model` is installed.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self
from urllib.parse import urlsplit

import httpx2

from banking_server.agent.settings import ModelSettings
from tool_chaining.text import one_line
from tool_chaining_proxy.hosting.untrusted import ResilientHttpClient

Message = dict[str, Any]
"""A message of the conversation, as JSON."""

RETRIES: Final = 2
"""How often a request is repeated that timed out, or met 429 or 5xx."""


class ModelUnavailable(Exception):
    """The model gave no reply that can be used; the message is one line for people."""

    status: int | None = None
    """The HTTP status, if the endpoint answered with an error."""


@dataclass(frozen=True)
class Completion:
    """One reply of the model."""

    text: str
    calls: list[Message]
    """Tool calls in the endpoint's own form; the arguments are JSON text, and may be anything."""
    cut_off: bool = False
    """The reply ended at a length limit, not where the model wanted to."""
    prompt_tokens: int = 0
    """What it cost, as the endpoint counts; 0 if it does not count."""
    completion_tokens: int = 0


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
        asked to hold the reply to; an endpoint that rejects it is asked without from then on. With
        `on_text` the reply is streamed, unless there are functions.

        Raises ModelUnavailable.
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
        except ModelUnavailable as rejected:
            if rejected.status not in (400, 422, 501):
                raise  # It is not about the form of the request.
        completion = await self._complete(request, on_text)
        self.constrains = False
        return completion

    async def _complete(self, request: dict[str, Any], on_text: OnText | None) -> Completion:
        import openai

        # Halves of surrogate pairs, which a model can write, cannot be sent.
        request = json.loads(json.dumps(request, ensure_ascii=False).encode(errors="replace"))
        create = self._client.chat.completions.create
        text, reason, usage = "", None, None
        calls: Sequence[Any] = ()
        try:
            if on_text is None or "tools" in request:
                answer = await create(**request)
                choice, usage = answer.choices[0], answer.usage
                text += choice.message.content or ""
                reason, calls = choice.finish_reason, choice.message.tool_calls or ()
            else:
                request |= {"stream": True, "stream_options": {"include_usage": True}}
                async with await create(**request) as stream:
                    async for chunk in stream:
                        usage = chunk.usage or usage
                        for choice in chunk.choices[:1]:
                            text += choice.delta.content or ""
                            reason = choice.finish_reason or reason
                        on_text(text)
                if reason is None:
                    raise openai.OpenAIError("it broke off in the middle")
            return Completion(
                text,
                [_call(number, call) for number, call in enumerate(calls, start=1)],
                cut_off=reason == "length",
                prompt_tokens=int(usage.prompt_tokens) if usage else 0,
                completion_tokens=int(usage.completion_tokens) if usage else 0,
            )
        except (openai.OpenAIError, httpx2.HTTPError) as error:
            raise self._unavailable(error) from error
        except (ValueError, TypeError, AttributeError, LookupError, RuntimeError) as error:
            # The client takes an endpoint at its word: this is what another answer comes to.
            raise self._unavailable(ValueError("it is no chat completion")) from error

    def _unavailable(self, error: Exception) -> ModelUnavailable:
        """Return what went wrong, in one line for people, without the key."""
        place = urlsplit(self.settings.url).netloc.rpartition("@")[2]
        status: int | None = getattr(error, "status_code", None)
        why = f"HTTP {status}: {error}" if status else str(error.__cause__ or "") or str(error)
        if self._key:
            why = why.replace(self._key, "***")
        unavailable = ModelUnavailable(
            f"The model endpoint at {place} gave no reply that can be used: "
            f"{one_line(why, 300).rstrip('.')}. BANKING_MODEL_URL, BANKING_MODEL_NAME and "
            "BANKING_MODEL_KEY say which model is asked."
        )
        unavailable.status = status
        return unavailable


def _call(number: int, call: Any) -> Message:
    """Return a tool call as it is sent back. Some endpoints send no id, or arguments as JSON."""
    arguments = call.function.arguments or "{}"
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    function = {"name": str(call.function.name), "arguments": text}
    return {"id": str(call.id or f"call_{number}"), "type": "function", "function": function}
