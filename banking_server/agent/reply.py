"""Reading a model's reply: is it an answer for the user, or a tool call?

A reply is a **call** if it holds one JSON object of either shape, and nothing comes after it:

    {"tool": "list_accounts", "arguments": {}}
    {"response": "I'll look.", "mcp": {"tool": "bank", "method": "list_accounts", "params": {}}}

bare or in a Markdown code fence, as most small models write it. Words *before* the object are
what the model says while it calls ("Let me look that up:"). Words *after* it make the intent
doubtful: the model may be explaining a call, or inventing its result. So does a second object.
Such a reply is neither executed nor taken for an answer; the model is asked what it means. So it
is with what looks like a call and is not valid JSON: nothing is ever repaired by guessing.

`{"name", "arguments"}` is read as well, since models trained on function calling fall back to it.
`{"response": "..."}` without `mcp` is an answer. Everything else is an answer, word for word.
"""

import json
import re
from dataclasses import dataclass
from typing import Any, Final

OBJECTS_LOOKED_AT: Final = 50
"""Places in one reply where a JSON object is looked for."""

NESTING: Final = 100
"""Levels of a JSON object that are still taken for one."""

_FENCE_BEFORE = re.compile(r"```[\w-]*\s*\Z")
_FENCE_AFTER = re.compile(r"\A\s*```")
_LIKE_A_CALL = re.compile(r"""\{\s*["'“]?(?:tool|mcp|response|arguments)["'”]?\s*:""")
_NO_METHOD = frozenset({"", "call", "call_tool", "tools/call"})


@dataclass(frozen=True)
class Answer:
    """The reply is for the user."""

    text: str


@dataclass(frozen=True)
class CallRequest:
    """The reply asks for a tool call."""

    names: tuple[str, ...]
    """What the tool may be called, the likeliest first: the seed's shape says it in two parts."""
    arguments: dict[str, Any]
    said: str = ""
    """What the model tells the user beside it."""


@dataclass(frozen=True)
class Unreadable:
    """The reply looks like a call, but is none that could be made."""

    problem: str
    """What is wrong, in a sentence for the model."""


Reading = Answer | CallRequest | Unreadable


def read_reply(text: str, *, cut_off: bool = False) -> Reading:
    """Read a reply's text; never raises. `cut_off`: it ended at a length limit."""
    text = text.strip()
    if not text:
        return Unreadable("the reply was empty")
    at = -1
    for _ in range(OBJECTS_LOOKED_AT):
        at = text.find("{", at + 1)
        if at < 0:
            break
        before = _FENCE_BEFORE.sub("", text[:at]).strip()
        value, end, problem = _object_at(text, at)
        if problem:
            if not before or _LIKE_A_CALL.match(text, at):
                if cut_off:
                    return Unreadable("the reply was cut off before its JSON object was complete")
                return Unreadable(f"the JSON object in the reply is not valid: {problem}")
            continue
        rest = _FENCE_AFTER.sub("", text[end:]).strip()
        if _is_call(value):
            if rest:
                return Unreadable(
                    "the reply goes on after the JSON object of its call, so that it is not clear "
                    "whether the call is meant; make one call in a reply, and write nothing after "
                    "it, since its result comes in the next message"
                )
            return _call(value, before)
        if not before and not rest and isinstance(value.get("response"), str):
            return Answer(value["response"])
        at = end - 1
    return Answer(text)


def read_arguments(text: str) -> dict[str, Any] | Unreadable:
    """Read the arguments of a native call, which are JSON text; none at all means `{}`."""
    text = text.strip()
    if not text:
        return {}
    value, end, problem = _object_at(text, 0) if text[0] == "{" else ({}, 0, "")
    if problem:
        return Unreadable(f"the arguments are not valid JSON: {problem}")
    if text[end:].strip():
        return Unreadable("the arguments are not one JSON object")
    return value


def certain_text(text: str) -> str:
    """Return the start of an unfinished reply that is for the user, whatever may follow."""
    return re.split(r"\{|```|`{1,2}\Z", text.lstrip(), maxsplit=1)[0]


def _object_at(text: str, at: int) -> tuple[dict[str, Any], int, str]:
    """Return the JSON object that begins at `at`, where it ends, and what is wrong with it."""
    try:
        value, end = json.JSONDecoder().raw_decode(text, at)
        # What cannot be written as JSON again (NaN, 1e999, half a character) cannot be sent either.
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
        if _deeper_than(NESTING, value):
            raise RecursionError
    except json.JSONDecodeError as error:
        return {}, at, f"{error.msg} at line {error.lineno} column {error.colno}"
    except UnicodeEncodeError:
        return {}, at, "it holds half a character (an unpaired surrogate)"
    except (ValueError, RecursionError):
        return {}, at, "it holds a number that JSON has not, or is nested too deeply"
    return value, end, ""


def _deeper_than(levels: int, value: Any) -> bool:
    layer = [value]
    for _ in range(levels):
        layer = [
            inner
            for outer in layer
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not layer:
            return False
    return True


def _is_call(value: dict[str, Any]) -> bool:
    if value.get("mcp") is not None or "tool" in value:
        return True
    return isinstance(value.get("name"), str) and "arguments" in value


def _call(value: dict[str, Any], before: str) -> Reading:
    if value.get("mcp") is not None:
        return _mcp_call(value, before)
    name = value.get("tool", value.get("name"))
    if not isinstance(name, str) or not name:
        return Unreadable('"tool" must be the name of a tool')
    arguments = value.get("arguments", {})
    if not isinstance(arguments, dict):
        return Unreadable('"arguments" must be a JSON object')
    return CallRequest((name,), arguments, before)


def _mcp_call(value: dict[str, Any], before: str) -> Reading:
    """Read the seed's shape, where `mcp.tool` is a server (or a tool) and `method` its tool."""
    mcp = value["mcp"]
    if not isinstance(mcp, dict) or not isinstance(mcp.get("tool"), str):
        return Unreadable('"mcp" must be an object with "tool", "method" and "params"')
    tool, method, params = mcp["tool"], mcp.get("method"), mcp.get("params", {})
    if not isinstance(params, dict):
        return Unreadable('"mcp.params" must be a JSON object')
    if method is not None and not isinstance(method, str):
        return Unreadable('"mcp.method" must be the name of a tool')
    response = value.get("response")
    said = response if isinstance(response, str) else before
    if method is None or method in _NO_METHOD:
        return CallRequest((tool,), params, said)
    return CallRequest((f"{tool}__{method}", method), params, said)
