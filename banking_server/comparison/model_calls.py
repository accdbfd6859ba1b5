"""What a run asks of the model: the replies, their tokens, and what of the prompts was new."""

import json
from collections.abc import Sequence
from os.path import commonprefix
from typing import Any

import anyio
from pydantic import BaseModel, ConfigDict

from banking_server.agent import Completion, Endpoint, Message, ModelSettings, ModelUnavailable


class ModelCall(BaseModel):
    """One reply of the model."""

    model_config = ConfigDict(frozen=True)

    prompt_tokens: int
    completion_tokens: int
    estimated: bool
    """The endpoint did not count, so that these are guesses."""
    cached_tokens: int
    """Of the prompt, what was in the endpoint's cache."""
    cached_by_endpoint: bool
    """Whether the endpoint said so. If not, it is what the prompt has in common with the prompt
    before it, from its beginning, as far as that goes."""
    seconds: float
    reply: str


class CountingEndpoint(Endpoint):
    """A model whose calls are counted."""

    calls: list[ModelCall]
    unavailable: str | None
    """Why a call brought no reply, in one line; None if none failed."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__(settings)
        self._before = ""
        self._one_at_a_time = anyio.Lock()
        self.begin()

    def begin(self) -> None:
        """Begin to count anew. What the endpoint has in its cache stays."""
        self.calls = []
        self.unavailable = None

    async def complete(
        self, messages: Sequence[Message], *, functions: Sequence[Any] = (), **more: Any
    ) -> Completion:
        """Ask for the next message of a conversation, as `Endpoint` does, and count it."""
        try:
            # One at a time: a client asks for several arguments at once, and a model that answers
            # them one after the other would seem slower for it.
            async with self._one_at_a_time:
                completion = await super().complete(messages, functions=functions, **more)
        except ModelUnavailable as error:
            self.unavailable = str(error)
            raise
        self.calls.append(self._counted(completion, json.dumps([[*functions], [*messages]])))
        return completion

    def _counted(self, completion: Completion, prompt: str) -> ModelCall:
        usage = completion.usage
        common = len(commonprefix([self._before, prompt])) / len(prompt)  # noqa: RUF071
        self._before = prompt
        cached = usage.cached_tokens
        return ModelCall(
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            estimated=usage.estimated,
            cached_tokens=int(usage.prompt_tokens * common) if cached is None else cached,
            cached_by_endpoint=cached is not None,
            seconds=round(completion.seconds, 3),
            reply=completion.text,
        )
