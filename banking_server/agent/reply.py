"""Reading a model's reply: is it for the user, or does it ask for a tool call?

A reply asks for a **call** if it holds a JSON object of one of these shapes, and ends with it:

    {"tool": "list_accounts", "arguments": {}}
    {"response": "I'll look.", "mcp": {"tool": "bank", "method": "list_accounts", "params": {}}}

The object may stand in a Markdown code fence, as most small models write it. Words *before* the
object are what the model says to the user with the call ("Let me look that up:"). Words *after* it,
or a second object, make the intent doubtful: the model may be explaining a call, or inventing its
result. Such a reply is neither executed nor shown to the user; the model is asked what it means.
The same goes for what looks like a call and is not valid JSON: nothing is repaired by guessing.

`{"name", "arguments"}` is read as well, since models trained on function calling fall back to it.
`{"response": "..."}` without `mcp`, or `{"answer": "..."}`, is for the user. So is every other
reply, word for word.
"""

import json
import re
from dataclasses import dataclass
from typing import Any, Final

from banking_server.chaining.values import canonical

OBJECTS_LOOKED_AT: Final = 50
"""Places in one reply where a JSON object is looked for."""

NESTING: Final = 100
"""Levels of nesting at which a JSON object is still accepted."""

REPLY_TO_USER: Final = "reply_to_user"
"""The tool that is none: calling it is the prompt form's way to say that the task is done."""

MESSAGE: Final = "message"
"""Its one argument: the text for the user."""

_THOUGHTS = re.compile(
    r"<(think(?:ing)?)(?:\s[^<>]{0,200})?>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE
)
_THOUGHT_BEGINS = re.compile(r"<think(?:ing)?(?:\s[^<>]{0,200})?>", re.IGNORECASE)
_THOUGHT_ENDS = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_MAY_BECOME_A_TAG = re.compile(r"</?\w{0,8}(?:(?<=think|nking)\s[^<>]{0,200})?\Z", re.IGNORECASE)
_REST_OF_THOUGHTS = re.compile(r"\A.*</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_BEGINS_AS_ANSWER = re.compile(
    rf'\A\s*\{{\s*"tool"\s*:\s*"{REPLY_TO_USER}"\s*,\s*"arguments"\s*:\s*\{{\s*"{MESSAGE}"\s*:\s*"'
    r'((?:[^"\\]|\\(?:[^u]|u[0-9a-fA-F]{4}))*)'
)
_FENCE_BEFORE = re.compile(r"```[\w-]*\s*\Z")
_FENCE_AFTER = re.compile(r"\A\s*```")
_LIKE_A_CALL = re.compile(r"""\{\s*["'“]?(?:tool|mcp|response|arguments)["'”]?\s*:""")
_NO_METHOD = frozenset({"", "call", "call_tool", "tools/call"})


@dataclass(frozen=True)
class ForUser:
    """The reply is for the user."""

    text: str


@dataclass(frozen=True)
class CallRequest:
    """The reply asks for a tool call."""

    names: tuple[str, ...]
    """Names by which the tool may be known, the likeliest first: the `mcp` shape has two parts."""
    arguments: dict[str, Any]
    said: str = ""
    """What the model tells the user with the call."""


@dataclass(frozen=True)
class Unreadable:
    """The reply looks like a call, but it cannot be read as one."""

    problem: str
    """What is wrong, in a sentence for the model."""


Meaning = ForUser | CallRequest | Unreadable
"""What a reply means."""


def without_thoughts(text: str) -> str:
    """Return a reply without what a model thinks aloud, in `<think>` blocks, closed or not.

    Some chat templates open the block themselves, so that a reply has only its end.
    """
    if text.lstrip().startswith("{"):
        return text  # A tag in it stands in an argument.
    return _REST_OF_THOUGHTS.sub("", _THOUGHTS.sub("", text)).strip()


def read_reply(text: str, *, cut_off: bool = False) -> Meaning:
    """Read the text of a reply; never raises. `cut_off` says that it ended at a length limit."""
    text = without_thoughts(text).strip()
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
        words = value.get("response") or (len(value) == 1 and value.get("answer"))
        if not before and not rest and isinstance(words, str):
            return ForUser(without_thoughts(words))
        at = end - 1
    return ForUser(text)


def read_arguments(text: str) -> dict[str, Any] | Unreadable:
    """Read the arguments of a call in the endpoint's own form: JSON text; empty means `{}`."""
    text = text.strip()
    if not text:
        return {}
    value, end, problem = _object_at(text, 0) if text[0] == "{" else ({}, 0, "")
    if problem:
        return Unreadable(f"the arguments are not valid JSON: {problem}")
    if text[end:].strip():
        return Unreadable("the arguments are not one JSON object")
    return value


def certain_text(text: str, *, constrained: bool = False) -> str:
    """Return the start of an unfinished reply that is for the user, whatever follows it.

    One thing can still follow: the end of a thought that was never begun.
    `constrained` says that the endpoint lets nothing come after a JSON object.
    """
    answer = _BEGINS_AS_ANSWER.match(text) if constrained else None
    if answer is not None:
        # A half character at the end waits for its other half.
        text = re.sub("[\ud800-\udbff]\\Z", "", json.loads(f'"{answer[1]}"', strict=False))
        return _certain(without_thoughts(text))
    begins = [found.start() for found in _THOUGHT_BEGINS.finditer(text)]
    if len(begins) > len(_THOUGHT_ENDS.findall(text)):
        text = text[: begins[0]]  # A thought may stand in a thought.
    certain = _certain(without_thoughts(text))
    return re.split(r"\[\s*\{|\{|```|`{1,2}\Z|\[\s*\Z", certain, maxsplit=1)[0].rstrip()


def _certain(text: str) -> str:
    """Return a text without an end that may become a tag, or go away as white space."""
    return _MAY_BECOME_A_TAG.sub("", text).strip()


def _object_at(text: str, at: int) -> tuple[dict[str, Any], int, str]:
    """Return the JSON object that begins at `at`, where it ends, and what is wrong with it."""
    try:
        value, end = json.JSONDecoder(object_pairs_hook=_once).raw_decode(text, at)
        # What not everybody can write as JSON (NaN, 1e999, half a character) is not sent either.
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
        canonical(value)
        if _deeper_than(NESTING, value):
            raise RecursionError
    except json.JSONDecodeError as error:
        return {}, at, f"{error.msg} at line {error.lineno} column {error.colno}"
    except _Twice as error:
        return {}, at, f"{str(error)!r} stands twice in it"
    except UnicodeEncodeError:
        return {}, at, "it holds half a character (an unpaired surrogate)"
    except (ValueError, RecursionError):
        return {}, at, "it holds a number that JSON has not, or is nested too deeply"
    return value, end, ""


class _Twice(Exception):
    """A name stands twice in one object, so that it is not clear which of the values is meant."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for name, item in pairs:
        if name in value:
            raise _Twice(name[:80])
        value[name] = item
    return value


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


def _call(value: dict[str, Any], before: str) -> Meaning:
    if value.get("mcp") is not None:
        return _mcp_call(value, before)
    name = value.get("tool", value.get("name"))
    if not isinstance(name, str) or not name:
        return Unreadable('"tool" must be the name of a tool')
    arguments = value.get("arguments", {})
    if not isinstance(arguments, dict):
        return Unreadable('"arguments" must be a JSON object')
    if name == REPLY_TO_USER:
        message = arguments.get(MESSAGE)
        if len(arguments) == 1:
            [message] = arguments.values()  # Small models call it "text", or "answer".
        message = without_thoughts(message).strip() if isinstance(message, str) else ""
        if not message:
            return Unreadable(f'"{MESSAGE}" of {REPLY_TO_USER} must be the text for the user')
        return ForUser(f"{before}\n{message}" if before else message)
    return CallRequest((name,), arguments, before)


def _mcp_call(value: dict[str, Any], before: str) -> Meaning:
    """Read the `mcp` shape, in which `tool` is a server and `method` its tool, or `tool` a tool."""
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
