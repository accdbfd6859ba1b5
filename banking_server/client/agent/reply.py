"""Reading a model's reply: is it for the user, or does it ask for a tool call?

A reply asks for a **call** if it holds a JSON object of one of these shapes, and ends with it:

    {"tool": "list_accounts", "arguments": {}}
    {"response": "I'll look.", "mcp": {"tool": "bank", "method": "list_accounts", "params": {}}}

Words before the object are the model's message to the user. Words after it, or invalid JSON, make
the intent doubtful: the model is asked what it means, and nothing is guessed.

Models fall back to the markup that they were trained on, and not every endpoint reads it. One JSON
object that names a known tool is a call, whatever its keys are. So is text in a markup of tool
calls (`_MARK`) that has the name of one known tool and one JSON object, or only the name. Any other
reply with such markup goes back to the model: it is never an answer.

`{"response": "..."}` without `mcp` is for the user. So is every other reply, without the tokens
of the chat template around it.
"""

import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from banking_server.client.agent.endpoint import Completion, Message
from tool_chaining.text import is_json

REPLY_TO_USER: Final = "reply_to_user"
"""A pseudo-tool: the model calls it in the prompt form to say that the task is done."""

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
"""Parts of our own prompts, which never belong in an answer to a user."""

_MARK: Final = re.compile(
    r"""
    <[/|\uff5c]{0,2}[\w:|\uff5c\u2581-]{0,40}?                    # <tool_call>, <|channel|>
        (?:tool|func|invoke|param|arg_|call|action|channel|plugin|python_tag|recipient)
        [\w|\uff5c\u2581]{0,40} (?:[=\s](?:name=)?(?P<of>[^<>\n]{0,200}))? >
    | (?-i:\[/?[A-Z_]{0,20}(?:TOOL|ARGS|CALL_ID)[A-Z_]{0,20}\])    # [TOOL_CALLS]
    | ```[ ]?(?:tool|func)\w{0,40}
    | ^\W{0,4}Action[ _]Input\W{0,4}:
    | ^\W{0,4}Action\W{0,4}:(?=\W{0,4}[\w.()-]{1,99}\W{0,4}$)
    | ^>>>(?=\s?[\w.]{1,99}$)
    | \u273f\w{1,20}\u273f:?                                         # Qwen-Agent
    | \bto=functions\. | \bfunctools(?=\[)
    """,
    re.VERBOSE | re.MULTILINE | re.IGNORECASE,
)
"""The markup of tool calls, in the templates of Qwen, Llama, Mistral and others, and in ReAct."""

_INVENTED: Final = re.compile(
    "^\\W{0,4}Observation\\W{0,4}:|\u273fRESULT\u273f", re.MULTILINE | re.IGNORECASE
)
"""In ReAct and Qwen-Agent, the tool's result follows, which a model may invent."""

_THOUGHTS: Final = re.compile(
    r"\A.*</think>\s*|<think>.*?(?:</think>\s*|\Z)"
    # The channels of gpt-oss, with their tokens and without.
    r"|(?:<\|start\|>\w*)?<\|channel\|>\s*analysis.*?(?:<\|end\|>\s*|(?=<\|start\|>)|\Z)"
    r"|(?:<\|start\|>\w*)?<\|channel\|>\s*final\s*<\|message\|>"
    r"|\Aanalysis.*?assistant(?:final|(?=commentary))",
    re.DOTALL | re.IGNORECASE,
)
_TEMPLATE: Final = re.compile(
    r"\A\s*<\|(?:im_start|start_header_id)\|>assistant(?:<\|end_header_id\|>)?"
    r"|(?:(?:<[|\uff5c][^<>\n]{1,60}[|\uff5c]>|</s>|<eos>|<end_of_turn>)\s*){1,9}\Z"
)
"""The tokens of a chat template around a reply."""

_FENCE_BEFORE: Final = re.compile(r"(?:```[\w-]*\s*)?\[?\s*\Z")
_ENDS: Final = re.compile(r"[\s`\])]*\Z")
_LIKE_A_CALL: Final = re.compile(
    r"""\{\s*["'“]?(?:tool|mcp|response|arguments)["'”]?\s*:"""
    r"""|\{\s*"name"\s*:\s*"[\w.-]+"\s*,\s*"(?:arguments|parameters)"\s*:"""
)
_MOST_OBJECTS: Final = 1_000
"""The most JSON objects to try in one reply."""


class Unfit(ValueError):
    """A reply's request cannot be carried out; the message tells the model why."""


@dataclass(frozen=True)
class CallRequest:
    """The reply asks for a tool call."""

    names: tuple[str, ...]
    """Possible names of the tool, the likeliest first: the `mcp` shape has two parts."""
    arguments: dict[str, Any]
    said: str = ""
    """The model's message to the user with the call."""


Meaning = str | CallRequest | Unfit
"""What a reply means: an answer to the user, a call, or nothing usable."""


def read_completion(completion: Completion, names: Collection[str]) -> list[Meaning]:
    """Return what a reply means: its calls in the endpoint's own form, or the meaning of its text.

    `names` are the tools that the model knows.
    """
    if completion.calls:
        said = [completion.text.strip(), *[""] * len(completion.calls)]
        return [_read_native(*each) for each in zip(completion.calls, said, strict=False)]
    try:
        return [read_reply(completion.text, names, cut_off=completion.cut_off)]
    except Unfit as problem:
        return [problem]


def _read_native(call: Message, said: str) -> Meaning:
    name, text = call["function"]["name"], call["function"]["arguments"].strip()
    try:
        value, end = _object_at(text, 0)
        if text[end:].strip():
            raise Unfit("more follows it")
    except Unfit as problem:
        # Endpoints reject a history with invalid JSON.
        call["function"]["arguments"] = "{}"
        return Unfit(f"the arguments are not one JSON object: {problem}")
    return CallRequest((name,), value, said)


def read_reply(
    text: str, names: Collection[str] = (), *, cut_off: bool = False
) -> str | CallRequest:
    """Return the meaning of a reply's text: an answer or a call.

    `names` are the tools that the model knows. `cut_off` says that the reply ended at a length
    limit. Raises Unfit, and nothing else.
    """
    text = _TEMPLATE.sub("", without_thoughts(text).strip()).strip()
    names = {*names, REPLY_TO_USER}
    mark = None if text.startswith("{") else _MARK.search(text) or _as_code(names).search(text)
    if mark is not None:
        said = _TEMPLATE.sub("", text[: mark.start()].strip()).strip()
        return _read_marked(text[mark.start() :], names, said, cut_off=cut_off)
    for found in islice(re.finditer(r"\{", text), _MOST_OBJECTS):
        at = found.start()
        said = _FENCE_BEFORE.sub("", text[:at]).strip()
        try:
            value, end = _object_at(text, at, cut_off=cut_off)
        except Unfit:
            if said and not _LIKE_A_CALL.match(text, at):
                continue
            raise
        reading = _read_object(value, names, said)
        if isinstance(reading, CallRequest):
            _check_end(text[end:])
        if reading is not None:
            return reading
    return _answer(text)


def _read_marked(
    text: str, names: Collection[str], said: str, *, cut_off: bool
) -> str | CallRequest:
    """Return the call in text with the markup of tool calls. Raises Unfit unless it is one call."""
    bare = _as_code(names).sub("", _MARK.sub(lambda mark: f" {mark['of'] or ''} ", text))
    at = bare.find("{")
    words = re.findall(r"\w[\w-]*", bare[:at] if at >= 0 else bare)
    named = [word for word in words if word in names]
    value, end = _object_at(bare, at, cut_off=cut_off) if at >= 0 else ({}, len(bare))
    reading: str | CallRequest | None = None
    if len(named) == 1 and (at >= 0 or words == named):
        reading = _read_object({"tool": named[0], "arguments": value}, names, said)
    elif at >= 0 and not named:
        reading = _read_object(value, names, said)
    if reading is None:
        raise Unfit(
            "the reply has the markup of a tool call, which is not read here; write a call as "
            '{"tool": "tool-name", "arguments": {"argument-name": "value"}}, and nothing else'
        )
    _check_end(bare[end:])
    return reading


def _as_code(names: Collection[str]) -> re.Pattern[str]:
    """Return the text before a name in a call written as code, or as a tag."""
    known = "|".join(map(re.escape, names))
    before = r"^[^\w\n]{0,9}(?:print\s?\(\s?|call:|\w{1,40}\s?=\s?)?(?:\w{1,40}\.){0,4}"
    after = r"""\s?\{|\(\s?(?:[){"']|\w{1,40}\s?=)"""
    return re.compile(rf"{before}(?=(?:{known})(?:{after}))|<(?=(?:{known})\s?/?>)", re.MULTILINE)


def _check_end(text: str) -> None:
    """Raise Unfit if more than its markup follows a call."""
    if not _ENDS.match(_MARK.sub("", text)):
        raise Unfit(
            "the reply goes on after the JSON object of its call, so that it is not clear "
            "whether the call is meant; make one call in a reply, and write nothing after "
            "it, since its result comes in the next message"
        )


def without_thoughts(text: str) -> str:
    """Return a reply without the model's thoughts, closed or not, and without invented results.

    Some chat templates open the `<think>` block themselves, so a reply has only its end.
    """
    if text.lstrip().startswith("{"):
        return text
    text = _THOUGHTS.sub("", text)
    mark = _MARK.search(text)
    invented = mark and _INVENTED.search(text, mark.end())
    return text[: invented.start()] if invented else text


def _object_at(text: str, at: int, *, cut_off: bool = False) -> tuple[dict[str, Any], int]:
    """Return the JSON object that begins at `at`, and where it ends. Raises Unfit."""
    problem = "it is not an object, or it contains something that JSON does not allow"
    try:
        value, end = json.JSONDecoder().raw_decode(text, at)
        if isinstance(value, dict) and is_json(value):
            return value, end
    except json.JSONDecodeError as error:
        problem = f"{error.msg} at line {error.lineno} column {error.colno}"
    except RecursionError:
        problem = "it is nested too deeply"
    if cut_off:
        raise Unfit("the reply was cut off before its JSON object was complete")
    raise Unfit(f"the JSON object in the reply is not valid: {problem}")


def _answer(text: str) -> str:
    if not text.strip():
        raise Unfit("the reply was empty")
    return text


def _read_object(
    value: dict[str, Any], names: Collection[str], said: str
) -> str | CallRequest | None:
    """Return the meaning of an object; None if it is only part of a text.

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
        call = _call_in(value, names)
        return None if call is None else _read_object(call, names, said)
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


def _call_in(value: Any, names: Collection[str], depth: int = 5) -> dict[str, Any] | None:
    """Return `{"tool", "arguments"}` for an object that names a known tool, whatever its keys are.

    None if it names none, down to this depth. Raises Unfit if its arguments are in doubt.
    """
    inside = [*value.values()] if isinstance(value, dict) else value
    if not isinstance(inside, list) or not depth:
        return None
    if isinstance(value, dict) and len(value) == 1 and isinstance(inside[0], dict):
        [(name, arguments)] = value.items()
        if name in names:
            return {"tool": name, "arguments": arguments}
    named = [one for one in inside if isinstance(one, str) and one in names]
    if not named or not isinstance(value, dict):
        calls = [call for one in inside if (call := _call_in(one, names, depth - 1)) is not None]
        if len(calls) > 1:
            raise Unfit("make one call in a reply")
        return calls[0] if calls else None
    given = [one for one in inside if isinstance(one, dict)]
    others = [one for one in inside if one and one not in (*named, *given)]
    if len(named) > 1 or len(given) > 1 or (others and not given):
        raise Unfit(f'write the call of {named[0]} as {{"tool": "...", "arguments": {{...}}}}')
    return {"tool": named[0], "arguments": given[0] if given else {}}
