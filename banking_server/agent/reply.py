"""Reading a model's reply: is it for the user, or does it ask for a tool call?

A reply asks for a **call** if it holds a JSON object of one of these shapes, and ends with it:

    {"tool": "list_accounts", "arguments": {}}
    {"response": "I'll look.", "mcp": {"tool": "bank", "method": "list_accounts", "params": {}}}

`{"name", "arguments"}` and `{"name", "parameters"}` are read as well: models trained on function
calling fall back to them. Words before the object are what the model says to the user with the
call. Words after it, or what is not valid JSON, make the intent doubtful: the model is asked what
it means, and nothing is guessed.

`{"response": "..."}` without `mcp` is for the user. So is every other reply, word for word.
"""

import json
import re
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from pydantic_core import from_json

from banking_server.agent.endpoint import Completion, Message
from tool_chaining.text import is_json

REPLY_TO_USER: Final = "reply_to_user"
"""The tool that is none: calling it is the prompt form's way to say that the task is done."""

MESSAGE: Final = "message"
"""Its one argument: the text for the user."""

OURS: Final = (
    REPLY_TO_USER,
    "The user's request was:",
    "Not called yet:",
    "If all of it is done",
    "nothing that was not asked for",
    "The calls for this request are over",
    "Answer it now, from the results",
    "No call was made:",
    "that repeats the",
    "was not called yet",
    "Tell the user so",
    "do not make it again",
    "The server named a next step",
)
"""What the model is told by this program, and what stands in no answer to a user."""

_TAGS: Final = re.compile(r"</?tool_call>")
"""Around the calls of many small models, which were trained to write them so."""

_THOUGHTS: Final = re.compile(r"\A.*</think>\s*|<think>.*?(?:</think>\s*|\Z)", re.DOTALL | re.I)
_FENCE_BEFORE: Final = re.compile(r"```[\w-]*\s*\Z")
_FENCE_AFTER: Final = re.compile(r"\A\s*```")
_MAY_BE_A_CALL: Final = re.compile(
    r"""\A(?:```[\w-]*\s*)?(?P<first>\{)|\{\s*["'“]?(?:tool|mcp|response|arguments)["'”]?\s*:"""
    r"""|\{\s*"name"\s*:\s*"[\w.-]+"\s*,\s*"(?:arguments|parameters)"\s*:"""
)


class Unfit(ValueError):
    """What a reply asks for cannot be done; the message tells the model why."""


@dataclass(frozen=True)
class CallRequest:
    """The reply asks for a tool call."""

    names: tuple[str, ...]
    """Names by which the tool may be known, the likeliest first: the `mcp` shape has two parts."""
    arguments: dict[str, Any]
    said: str = ""
    """What the model tells the user with the call."""


Meaning = str | CallRequest | Unfit
"""What a reply means: an answer to the user, a call, or nothing that can be used."""


def read_completion(completion: Completion) -> list[Meaning]:
    """Return what a reply means: its calls in the endpoint's own form, or what its text is."""
    if completion.calls:
        said = [completion.text.strip(), *[""] * len(completion.calls)]
        return [_read_native(*each) for each in zip(completion.calls, said, strict=False)]
    try:
        return [read_reply(completion.text, cut_off=completion.cut_off)]
    except Unfit as problem:
        return [problem]


def _read_native(call: Message, said: str) -> Meaning:
    name, text = call["function"]["name"], call["function"]["arguments"].strip()
    try:
        value, end = _object_at(text, 0)
        if text[end:].strip():
            raise Unfit("more follows it")
    except Unfit as problem:
        # Endpoints reject a history with what is no JSON.
        call["function"]["arguments"] = "{}"
        return Unfit(f"the arguments are not one JSON object: {problem}")
    return CallRequest((name,), value, said)


def read_reply(text: str, *, cut_off: bool = False) -> str | CallRequest:
    """Return the answer or the call that the text of a reply is.

    `cut_off` says that the reply ended at a length limit. Raises Unfit, and nothing else.
    """
    text = _TAGS.sub("", without_thoughts(text)).strip()
    for found in islice(_MAY_BE_A_CALL.finditer(text), 50):
        at = found.start("first") if found["first"] else found.start()
        try:
            value, end = _object_at(text, at)
        except Unfit as unfit:
            if cut_off:
                raise Unfit("the reply was cut off before its JSON object was complete") from None
            raise Unfit(f"the JSON object in the reply is not valid: {unfit}") from None
        reading = _read_object(value, said=_FENCE_BEFORE.sub("", text[:at]).strip())
        if isinstance(reading, CallRequest) and _FENCE_AFTER.sub("", text[end:]).strip():
            raise Unfit(
                "the reply goes on after the JSON object of its call, so that it is not clear "
                "whether the call is meant; make one call in a reply, and write nothing after "
                "it, since its result comes in the next message"
            )
        if reading is not None:
            return reading
    return _answer(text)


def without_thoughts(text: str) -> str:
    """Return a reply without what a model thinks aloud, in `<think>` blocks, closed or not.

    Some chat templates open the block themselves, so that a reply has only its end.
    """
    return text if text.lstrip().startswith("{") else _THOUGHTS.sub("", text)


def certain_text(text: str) -> str:
    """Return what of an unfinished reply is for the user, whatever follows it."""
    if text.lstrip().startswith("{"):
        try:
            value = from_json(text.strip(), allow_partial="trailing-strings")
            reading = _read_object(value, said="") if value.get("tool") == REPLY_TO_USER else ""
        except ValueError:
            return ""
        text = reading if isinstance(reading, str) else ""
    else:
        text = re.split(r"[{\[`<]", text, maxsplit=1)[0]
    return re.split("|".join(OURS), text, maxsplit=1)[0].strip()


def _object_at(text: str, at: int) -> tuple[dict[str, Any], int]:
    """Return the JSON object that begins at `at`, and where it ends. Raises Unfit."""
    try:
        value, end = json.JSONDecoder().raw_decode(text, at)
    except json.JSONDecodeError as error:
        raise Unfit(f"{error.msg} at line {error.lineno} column {error.colno}") from None
    except RecursionError:
        raise Unfit("it is nested too deep") from None
    if not isinstance(value, dict) or not is_json(value):
        raise Unfit("it is no object, or holds what JSON has not")
    return value, end


def _answer(text: str) -> str:
    if not text.strip():
        raise Unfit("the reply was empty")
    return text


def _read_object(value: dict[str, Any], said: str) -> str | CallRequest | None:
    """Return what an object means; None if it is only part of a text.

    In the `mcp` shape, `tool` is a server and `method` its tool, or `tool` is the tool.
    """
    mcp, response = value.get("mcp"), value.get("response")
    if mcp is None and isinstance(response, str) and not said:
        return _answer(without_thoughts(response).strip())
    if isinstance(mcp, dict):
        said = response if isinstance(response, str) else said
        name, arguments = mcp.get("tool"), mcp.get("params", {})
    elif "tool" in value or ("name" in value and {"arguments", "parameters"} & value.keys()):
        name = value.get("tool", value.get("name"))
        arguments = value.get("arguments", value.get("parameters", {}))
    else:
        return None
    if not isinstance(name, str) or not name:
        raise Unfit('"tool" must be the name of a tool')
    if not isinstance(arguments, dict):
        raise Unfit("the arguments of a call must be a JSON object")
    method = mcp.get("method") if isinstance(mcp, dict) else None
    if isinstance(method, str) and method not in ("", "call", "call_tool", "tools/call"):
        return CallRequest((f"{name}__{method}", method), arguments, said)
    if name != REPLY_TO_USER:
        return CallRequest((name,), arguments, said)
    # Small models call the one argument "text", or "answer".
    texts = [arguments[MESSAGE]] if MESSAGE in arguments else [*arguments.values()]
    message = without_thoughts(texts[0]).strip() if [*map(type, texts)] == [str] else ""
    if not message:
        raise Unfit(f'"{MESSAGE}" of {REPLY_TO_USER} must be the text for the user')
    return _answer(f"{said}\n{message}" if said else message)
