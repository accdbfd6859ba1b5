"""The model: any OpenAI-compatible chat endpoint, through the `openai` client.

    async with Endpoint(load_model_settings()) as endpoint:
        completion = await endpoint.complete([{"role": "user", "content": "Hello"}])

The client is imported where it is used: it is slow to import, and it is there only if the extra
`model` is installed.
"""

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self
from urllib.parse import urlsplit

import httpx2

from banking_server.client.agent.settings import ModelSettings
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
        if on_text is not None and "tools" not in request:
            request |= {"stream": True, "stream_options": {"include_usage": True}}
        create = self._client.chat.completions.with_streaming_response.create
        reply = _Reply()
        try:
            async with create(**request) as response:
                async for value in _values(response.iter_lines()):
                    reply.add(value)
                    if on_text is not None:
                        on_text(reply.text)
            return reply.completion()
        except (openai.OpenAIError, httpx2.HTTPError, ValueError, RuntimeError) as error:
            raise self._unavailable(error) from error

    def _unavailable(self, error: Exception) -> ModelUnavailable:
        """Return what went wrong, in one line for people, without the key."""
        place = urlsplit(self.settings.url).netloc.rpartition("@")[2]
        status: int | None = getattr(error, "status_code", None)
        why = _reason(getattr(error, "body", None)) or str(error.__cause__ or "") or str(error)
        why = f"HTTP {status}: {why}" if status else why
        if self._key:
            why = why.replace(self._key, "***")
        unavailable = ModelUnavailable(
            f"The model endpoint at {place} gave no reply that can be used: "
            f"{one_line(why, 300).rstrip('.')}. BANKING_MODEL_URL, BANKING_MODEL_NAME and "
            "BANKING_MODEL_KEY say which model is asked."
        )
        unavailable.status = status
        return unavailable


async def _values(lines: AsyncIterator[str]) -> AsyncIterator[Any]:
    """Yield each JSON value of a response, of its events or the whole; then None if it is complete.

    An endpoint may ignore `stream`. What is no JSON is left out.
    """
    other = ""
    events = False
    async for line in lines:
        if line.startswith("data:"):
            events = True
            data = line.removeprefix("data:").strip()
            yield None if data == "[DONE]" else _parsed(data)
        else:
            other += f"{line}\n"
    if not events:
        yield _parsed(other)
        yield None


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return {}


def _member(value: Any, name: str) -> Any:
    """Return a member of an object; None if there is none, or no object."""
    return value.get(name) if isinstance(value, dict) else None


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _reason(value: Any) -> str:
    """Return an endpoint's own words for an error; empty if there are none."""
    if isinstance(value, list):
        value = value[0] if value else None
    if isinstance(value, dict):
        named = (_reason(value.get(name)) for name in ("error", "message", "detail", "msg"))
        return next(filter(None, named), "")
    return value.strip() if isinstance(value, str) else ""


class _Reply:
    """A reply as far as it is there. Endpoints differ: only what is used is read of it."""

    def __init__(self) -> None:
        self.text = ""
        self._calls: dict[int, Message] = {}
        self._usage: Any = None
        self._finish: Any = None
        self._problem = ""
        self._is_there = self._complete = False

    def add(self, value: Any) -> None:
        """Add an event of a streamed reply, or the whole of one; None is its end."""
        self._complete = self._complete or value is None
        choice = next(iter(_items(_member(value, "choices"))), None)
        self._finish = self._finish or _member(choice, "finish_reason")
        self._usage = _member(value, "usage") or self._usage
        self._problem = self._problem or _reason(value)
        delta = _member(choice, "delta")
        message = delta or _member(choice, "message")
        self._is_there = self._is_there or isinstance(message, dict)
        content = _member(message, "content")
        # Some endpoints send a list of parts; a part without a text is a thought, or an image.
        for part in [content] if isinstance(content, str) else _items(content):
            text = part if isinstance(part, str) else _member(part, "text")
            self.text += text if isinstance(text, str) else ""
        for call in _items(_member(message, "tool_calls")):
            function = _member(call, "function")
            name, arguments = _member(function, "name"), _member(function, "arguments") or ""
            at = _member(call, "index") if delta else None
            if not isinstance(at, int):
                at = len(self._calls) if name else len(self._calls) - 1
            made = self._calls.setdefault(at, {"id": f"call_{at + 1}", "name": "", "arguments": ""})
            made["id"] = str(_member(call, "id") or made["id"])
            made["name"] = made["name"] or str(name or "")
            made["arguments"] += arguments if isinstance(arguments, str) else json.dumps(arguments)

    def completion(self) -> Completion:
        """Return the whole reply. Raises ValueError if there is none."""
        calls = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": call["arguments"] or "{}"},
            }
            for call in self._calls.values()
            if call["name"]
        ]
        if not (self.text or calls) and (self._problem or not self._is_there):
            raise ValueError(self._problem or "it is no chat completion")
        if self._finish == "error" or not (self._finish or (self._complete and not self._problem)):
            raise ValueError(self._problem or "it broke off in the middle")
        tokens = [_member(self._usage, f"{what}_tokens") for what in ("prompt", "completion")]
        prompt, completion = (one if isinstance(one, int) else 0 for one in tokens)
        return Completion(self.text, calls, self._finish == "length", prompt, completion)
