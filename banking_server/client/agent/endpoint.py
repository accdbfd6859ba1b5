"""The model: any OpenAI-compatible chat endpoint, through the `openai` client.

    async with Endpoint(load_model_settings()) as endpoint:
        completion = await endpoint.complete([{"role": "user", "content": "Hello"}])

The client is imported where it is used: it is slow to import, and exists only with the extra
`model`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self
from urllib.parse import urlsplit

import httpx2

from banking_server.client.agent.settings import ModelSettings
from tool_chaining.content import member
from tool_chaining.text import one_line
from tool_chaining_proxy.hosting.untrusted import ResilientHttpClient

Message = dict[str, Any]
"""A message of the conversation, as JSON."""

RETRIES: Final = 2
"""How often to retry a request that timed out, or met 429 or 5xx."""


class ModelUnavailable(Exception):
    """The model gave no usable reply; the message is one line for people."""

    status: int | None = None
    """The HTTP status, if the endpoint answered with an error."""


@dataclass(frozen=True)
class Completion:
    """One reply of the model."""

    text: str
    calls: list[Message]
    """Tool calls in the endpoint's own form; the arguments are JSON text, and may be anything."""
    cut_off: bool = False
    """The reply was cut off at a length limit."""
    prompt_tokens: int = 0
    """What it cost, as the endpoint counts; 0 if it does not count."""
    completion_tokens: int = 0


class Endpoint:
    """A chat endpoint; an async context manager that holds its connections.

    Raises ImportError if the client is not installed; `load_model_settings` says so in words.
    """

    def __init__(self, settings: ModelSettings) -> None:
        import openai

        self.settings = settings
        self.model = settings.name
        self.constrains = True
        """Whether the endpoint can enforce a JSON schema on a reply, as far as is known."""
        self._key = settings.key.get_secret_value() if settings.key else ""
        self._client = openai.AsyncOpenAI(
            base_url=settings.url,
            # The client insists on a key; endpoints without keys ignore it.
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
    ) -> Completion:
        """Ask for the next message of a conversation.

        `functions` are tools for the endpoint's own tool calling. `schema` is the JSON schema to
        enforce on the reply; if the endpoint rejects it, later requests have no schema.

        Raises ModelUnavailable.
        """
        request: dict[str, Any] = {"model": self.model, "messages": list(messages)}
        if functions:
            request["tools"] = list(functions)
        if self.settings.temperature is not None:
            request["temperature"] = self.settings.temperature
        if schema is None or not self.constrains:
            return await self._complete(request)
        held = {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}}
        try:
            return await self._complete({**request, "response_format": held})
        except ModelUnavailable as rejected:
            if rejected.status not in (400, 422, 501):
                raise  # The error has nothing to do with the request's form.
        completion = await self._complete(request)
        self.constrains = False
        return completion

    async def _complete(self, request: dict[str, Any]) -> Completion:
        import openai

        # Halves of surrogate pairs, which a model can write, cannot be sent.
        request = json.loads(json.dumps(request, ensure_ascii=False).encode(errors="replace"))
        try:
            raw = self._client.chat.completions.with_raw_response
            return _completion((await raw.create(**request)).text)
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
            f"The model endpoint at {place} gave no usable reply: "
            f"{one_line(why, 300).rstrip('.')}. BANKING_MODEL_URL, BANKING_MODEL_NAME and "
            "BANKING_MODEL_KEY say which model is asked."
        )
        unavailable.status = status
        return unavailable


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


def _completion(body: str) -> Completion:
    """Return the reply in a response. Endpoints differ, so only what is used is read of it.

    Raises ValueError if there is none.
    """
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    choice = next(iter(_items(member(value, "choices"))), None)
    message, finish = member(choice, "message"), member(choice, "finish_reason")
    text = _text(member(message, "content"))
    calls = []
    for number, call in enumerate(_items(member(message, "tool_calls")), start=1):
        function = member(call, "function")
        arguments = member(function, "arguments") or "{}"
        if name := member(function, "name"):
            written = arguments if isinstance(arguments, str) else json.dumps(arguments)
            made = {"name": str(name), "arguments": written}
            id_ = str(member(call, "id") or f"call_{number}")
            calls.append({"id": id_, "type": "function", "function": made})
    if finish == "error" or not (text or calls or isinstance(message, dict)):
        raise ValueError(_reason(value) or "it is not a chat completion")
    if not (text or calls) and (problem := _reason(value)):
        raise ValueError(problem)
    usage = member(value, "usage")
    tokens = [member(usage, f"{what}_tokens") for what in ("prompt", "completion")]
    prompt, completion = (one if isinstance(one, int) else 0 for one in tokens)
    return Completion(text, calls, finish == "length", prompt, completion)


def _text(content: Any) -> str:
    """Return the text of a message; some endpoints send a list of parts, thoughts among them."""
    parts = content if isinstance(content, list) else [content]
    texts = [part if isinstance(part, str) else member(part, "text") for part in parts]
    return "".join(text for text in texts if isinstance(text, str))
