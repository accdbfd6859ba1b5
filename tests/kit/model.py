"""A model for tests: an HTTP server that answers from a script.

It speaks the OpenAI-compatible protocol of chats, and, as far as hosts need them, OpenAI's protocol
of responses and Anthropic's of messages. Real sockets, streaming included. The script says for each
request what comes back; the requests are kept, so that a test can look at what the model was told.
"""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from .serving import Handler, serving

PROMPT_TOKENS, COMPLETION_TOKENS = 100, 10
USAGE = {
    "prompt_tokens": PROMPT_TOKENS,
    "completion_tokens": COMPLETION_TOKENS,
    "total_tokens": PROMPT_TOKENS + COMPLETION_TOKENS,
}


@dataclass(frozen=True)
class Reply:
    """A well-formed reply: text, native calls `(name, arguments)`, or both."""

    text: str | None = None
    calls: Sequence[tuple[str, dict[str, Any]]] = ()


@dataclass(frozen=True)
class Raw:
    """Any HTTP response at all."""

    body: str
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


class Silence:
    """No response before the test is over."""


Action = str | Reply | Raw | Silence
Script = Sequence[Action] | Callable[[dict[str, Any]], Action]


def error(status: int, message: str = "it broke", **headers: str) -> Raw:
    """An error response in the usual form."""
    return Raw(
        json.dumps({"error": {"message": message, "type": "server_error"}}),
        status=status,
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )


def call(tool: str, **arguments: Any) -> str:
    """A call in the prompt form."""
    return json.dumps({"tool": tool, "arguments": arguments})


def native(tool: str, **arguments: Any) -> Reply:
    """A call in the endpoint's own form."""
    return Reply(calls=[(tool, arguments)])


class ScriptedModel:
    """The server, and what it was asked."""

    def __init__(self, script: Script) -> None:
        self._script = iter(script) if not callable(script) else None
        self._answer = script if callable(script) else None
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.over = threading.Event()
        self.silent = threading.Event()
        """Set when a request is being met with silence."""
        self.url = ""

    def action(self, request: dict[str, Any]) -> Action:
        if self._answer is not None:
            return self._answer(request)
        assert self._script is not None
        return next(self._script, error(418, "the script is over"))

    @property
    def told(self) -> str:
        """Everything that was ever sent to the model."""
        return json.dumps(self.requests, ensure_ascii=False)

    def last_message(self) -> str:
        """What the model was told last, before its last reply."""
        return str(self.requests[-1]["messages"][-1]["content"])


@contextmanager
def scripted_model(script: Script) -> Iterator[ScriptedModel]:
    """Run the server on a free port."""
    model = ScriptedModel(script)

    with serving(type("Handler", (_Handler,), {"model": model})) as origin:
        model.url = f"{origin}/v1"
        try:
            yield model
        finally:
            model.over.set()


class _Handler(Handler):
    model: ScriptedModel

    def do_POST(self) -> None:
        request = self.message()
        self.model.requests.append(request)
        self.model.headers.append({name.lower(): value for name, value in self.headers.items()})
        path = self.path.partition("?")[0]
        if path not in ("/v1/chat/completions", *EVENTS):
            self._send(error(404, "no such path"))
            return
        action = self.model.action(request)
        if isinstance(action, str):
            action = Reply(action)
        try:
            match action:
                case Raw():
                    self._send(action)
                case Silence():
                    self.model.silent.set()
                    self.model.over.wait(30)
                    self.close_connection = True
                case Reply() if path in EVENTS:
                    self.begin_stream()
                    for event in EVENTS[path](request, action):
                        self.wfile.write(f"event: {event['type']}\n".encode())
                        self._event(event)
                case Reply() if request.get("stream"):
                    self._stream(request, action)
                case Reply():
                    self._send(Raw(json.dumps(_completion(request, action))))
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _send(self, raw: Raw) -> None:
        headers = {"content-type": "application/json", **raw.headers}
        self.answer(raw.status, raw.body.encode(), headers)

    def _event(self, data: dict[str, Any] | str) -> None:
        text = data if isinstance(data, str) else json.dumps(data)
        self.wfile.write(f"data: {text}\n\n".encode())
        self.wfile.flush()

    def _stream(self, request: dict[str, Any], reply: Reply) -> None:
        self.begin_stream()
        calls = [{"index": index, **called} for index, called in enumerate(_calls(request, reply))]
        self._event(_chunk({"content": reply.text, **({"tool_calls": calls} if calls else {})}))
        self._event(_chunk({}, finish=_finish(reply)))
        if request.get("stream_options", {}).get("include_usage"):
            self._event({**_chunk({}), "choices": [], "usage": USAGE})
        self._event("[DONE]")


def _finish(reply: Reply) -> str:
    return "tool_calls" if reply.calls else "stop"


def _chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {
        "id": "reply",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": "scripted",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }


def _calls(request: dict[str, Any], reply: Reply) -> list[dict[str, Any]]:
    tools = request.get("tools", [])
    functions = [
        {"name": name, "arguments": json.dumps(given), **_offered(tools, name)}
        for name, given in reply.calls
    ]
    return [
        {"id": f"id-{index}", "type": "function", "function": function}
        for index, function in enumerate(functions)
    ]


def _completion(request: dict[str, Any], reply: Reply) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text}
    if reply.calls:
        message["tool_calls"] = _calls(request, reply)
    return {
        "id": "reply",
        "object": "chat.completion",
        "created": 0,
        "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": _finish(reply)}],
        "usage": USAGE,
    }


def _offered(tools: list[dict[str, Any]], name: str) -> dict[str, str]:
    """Return how the request names the tool: hosts put their servers' names before it."""
    if name in [tool.get("function", tool).get("name") for tool in tools]:
        return {"name": name}
    for tool in tools:
        named = tool.get("function", tool).get("name", "")
        if named.endswith(name):
            return {"name": named}
        if inner := _offered(tool.get("tools", []), name):
            return {**inner, "namespace": tool["name"]}
    return {}


def _messages(request: dict[str, Any], reply: Reply) -> Iterator[dict[str, Any]]:
    """Anthropic's protocol: a text or one call, as events."""
    usage = {"input_tokens": PROMPT_TOKENS, "output_tokens": COMPLETION_TOKENS}
    message = {"id": "reply", "type": "message", "role": "assistant", "model": "scripted"}
    yield {"type": "message_start", "message": {**message, "content": [], "usage": usage}}
    block: dict[str, Any] = {"type": "text", "text": ""}
    delta = {"type": "text_delta", "text": reply.text}
    for name, arguments in reply.calls:
        block = {"type": "tool_use", "id": "id-0", "input": {}, **_offered(request["tools"], name)}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    stop = {"stop_reason": "tool_use" if reply.calls else "end_turn"}
    yield {"type": "message_delta", "delta": stop, "usage": usage}
    yield {"type": "message_stop"}


def _responses(request: dict[str, Any], reply: Reply) -> Iterator[dict[str, Any]]:
    """OpenAI's protocol of responses: a text or one call, as events."""
    item: dict[str, Any] = {"type": "message", "role": "assistant"}
    item["content"] = [{"type": "output_text", "text": reply.text}]
    for name, arguments in reply.calls:
        item = {"type": "function_call", "call_id": "id-0", **_offered(request["tools"], name)}
        item["arguments"] = json.dumps(arguments)
    yield {"type": "response.created", "response": {"id": "reply"}}
    yield {"type": "response.output_item.done", "item": item}
    usage = {"input_tokens": PROMPT_TOKENS, "output_tokens": COMPLETION_TOKENS}
    usage["total_tokens"] = PROMPT_TOKENS + COMPLETION_TOKENS
    yield {"type": "response.completed", "response": {"id": "reply", "usage": usage}}


EVENTS: dict[str, Callable[[dict[str, Any], Reply], Iterator[dict[str, Any]]]] = {
    "/v1/messages": _messages,
    "/v1/responses": _responses,
}
"""The protocols of hosts, by their paths."""
