"""Reading a model's reply: is it for the user, or does it ask for a tool call?

A reply asks for a **call** if it holds a JSON object of one of these shapes, and ends with it:

    {"tool": "list_accounts", "arguments": {}}
    {"response": "I'll look.", "mcp": {"tool": "bank", "method": "list_accounts", "params": {}}}

The object may stand in a Markdown code fence. Words before it are what the model says to the user
with the call. Words after it, or a second object, make the intent doubtful: the model may be
explaining a call, or inventing its result. Such a reply is neither executed nor shown to the user;
the model is asked what it means. The same goes for what looks like a call and is not valid JSON:
nothing is repaired by guessing.

`{"name", "arguments"}` is read as well, since models trained on function calling fall back to it.
`{"response": "..."}` without `mcp` is for the user. So is every other reply, word for word.
"""

import json
import re
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from pydantic_core import from_json

from banking_server.agent.endpoint import Completion
from banking_server.chaining.values import canonical

REPLY_TO_USER: Final = "reply_to_user"
"""The tool that is none: calling it is the prompt form's way to say that the task is done."""

MESSAGE: Final = "message"
"""Its one argument: the text for the user."""

OURS: Final = (
    REPLY_TO_USER,
    "The user's request was:",
    "the next call that it needs",
    "The calls for this request are over",
    "No call was made:",
    "The user declined the call of",
)
"""What stands in reminders and corrections of this program, and in no answer to a user."""

_TAGS: Final = re.compile(r"</?tool_call>")
"""Around the calls of many small models, which were trained to write them so."""

_THOUGHTS: Final = re.compile(r"\A.*</think>|<think>.*?(?:</think>|\Z)", re.DOTALL | re.IGNORECASE)
_FENCE_BEFORE: Final = re.compile(r"```[\w-]*\s*\Z")
_FENCE_AFTER: Final = re.compile(r"\A\s*```")
_MAY_BE_A_CALL: Final = re.compile(
    r"""\A(?:```[\w-]*\s*)?(?P<first>\{)|\{\s*["'“]?(?:tool|mcp|response|arguments)["'”]?\s*:"""
    r"""|\{\s*"name"\s*:\s*"[\w.-]+"\s*,\s*"arguments"\s*:"""
)


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
    repeats: bool = False
    """It is no call, but an answer that repeats what the model was told."""


Meaning = ForUser | CallRequest | Unreadable
"""What a reply means."""


def read_completion(completion: Completion) -> list[Meaning]:
    """Return what a reply means: its calls in the endpoint's own form, or what its text is."""
    if not completion.calls:
        return [read_reply(completion.text, cut_off=completion.cut_off)]
    meanings: list[Meaning] = []
    for call in completion.calls:
        name, text = call["function"]["name"], call["function"]["arguments"].strip()
        value, end, problem = _object_at(text, 0)
        if problem or text[end:].strip():
            problem = f"the arguments are not one JSON object: {problem or 'more follows it'}"
            meanings.append(Unreadable(problem))
        else:
            said = "" if meanings else completion.text.strip()
            meanings.append(CallRequest((name,), value, said))
    return meanings


def read_reply(text: str, *, cut_off: bool = False) -> Meaning:
    """Read the text of a reply; never raises. `cut_off` says that it ended at a length limit."""
    text = _TAGS.sub("", without_thoughts(text)).strip()
    for found in islice(_MAY_BE_A_CALL.finditer(text), 50):
        at = found.start("first") if found["first"] else found.start()
        value, end, problem = _object_at(text, at)
        if problem and cut_off:
            return Unreadable("the reply was cut off before its JSON object was complete")
        if problem:
            return Unreadable(f"the JSON object in the reply is not valid: {problem}")
        reading = _read_object(value, said=_FENCE_BEFORE.sub("", text[:at]).strip())
        if isinstance(reading, CallRequest) and _FENCE_AFTER.sub("", text[end:]).strip():
            return Unreadable(
                "the reply goes on after the JSON object of its call, so that it is not clear "
                "whether the call is meant; make one call in a reply, and write nothing after "
                "it, since its result comes in the next message"
            )
        if reading is not None:
            return reading
    return _for_user(text)


def _for_user(text: str) -> Meaning:
    """Return an answer; a model that repeats what this program reminded it of gives none."""
    if not text.strip():
        return Unreadable("the reply was empty")
    if any(words in text for words in OURS):
        return Unreadable(
            "that repeats the instructions; say to the user in your own words what "
            "was done, and what was not",
            repeats=True,
        )
    return ForUser(text)


def without_thoughts(text: str) -> str:
    """Return a reply without what a model thinks aloud, in `<think>` blocks, closed or not.

    Some chat templates open the block themselves, so that a reply has only its end.
    """
    return text.strip() if text.lstrip().startswith("{") else _THOUGHTS.sub("", text).strip()


def certain_text(text: str) -> str:
    """Return what of an unfinished reply is for the user, whatever follows it."""
    if text.lstrip().startswith("{"):
        try:
            value = from_json(text.strip(), allow_partial="trailing-strings")
        except ValueError:
            return ""
        reading = _read_object(value, said="") if value.get("tool") == REPLY_TO_USER else None
        return reading.text if isinstance(reading, ForUser) else ""
    begins = re.split(r"[{\[`<]", text, maxsplit=1)[0]
    return re.split("|".join(OURS), begins, maxsplit=1)[0].strip()


def _object_at(text: str, at: int) -> tuple[dict[str, Any], int, str]:
    """Return the JSON object that begins at `at`, where it ends, and what is wrong with it."""
    try:
        value, end = json.JSONDecoder(object_pairs_hook=_once).raw_decode(text, at)
        # What not everybody can write as JSON (NaN, 1e999, half a character) is not sent either.
        canonical(value).encode()
        return (value, end, "") if isinstance(value, dict) else ({}, at, "it is no object")
    except json.JSONDecodeError as error:
        return {}, at, f"{error.msg} at line {error.lineno} column {error.colno}"
    except (ValueError, RecursionError) as error:
        return {}, at, f"it holds what JSON has not, or is nested too deeply ({error})"


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object. Raises ValueError if a name stands twice: it is not clear what is meant."""
    names = [name for name, _ in pairs]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"{twice[0][:80]!r} stands twice in it")
    return dict(pairs)


def _read_object(value: dict[str, Any], said: str) -> Meaning | None:
    """Return what an object means; None if it is only part of a text.

    In the `mcp` shape, `tool` is a server and `method` its tool, or `tool` is the tool.
    """
    mcp, response = value.get("mcp"), value.get("response")
    if mcp is None and isinstance(response, str) and not said:
        return _for_user(without_thoughts(response))
    if isinstance(mcp, dict):
        said = response if isinstance(response, str) else said
        name, arguments = mcp.get("tool"), mcp.get("params", {})
    elif "tool" in value or ("name" in value and "arguments" in value):
        name, arguments = value.get("tool", value.get("name")), value.get("arguments", {})
    else:
        return None
    if not isinstance(name, str) or not name:
        return Unreadable('"tool" must be the name of a tool')
    if not isinstance(arguments, dict):
        return Unreadable("the arguments of a call must be a JSON object")
    method = mcp.get("method") if isinstance(mcp, dict) else None
    if isinstance(method, str) and method not in ("", "call", "call_tool", "tools/call"):
        return CallRequest((f"{name}__{method}", method), arguments, said)
    if name != REPLY_TO_USER:
        return CallRequest((name,), arguments, said)
    # Small models call the one argument "text", or "answer".
    texts = [arguments[MESSAGE]] if MESSAGE in arguments else [*arguments.values()]
    message = without_thoughts(texts[0]) if len(texts) == 1 and isinstance(texts[0], str) else ""
    if not message:
        return Unreadable(f'"{MESSAGE}" of {REPLY_TO_USER} must be the text for the user')
    return _for_user(f"{said}\n{message}" if said else message)
