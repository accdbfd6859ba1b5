"""Answers to the customer's questions: one that has more than MCP gives it is no yes."""

from typing import Any, Final

_MEMBERS: Final = frozenset({"action", "content", "_meta"})


def drop_odd_yes(message: dict[str, Any]) -> bool:
    """Take the content from each answer in a message that has members of its own, in place.

    The SDK would pass over them. Without its content a yes is refused by the tool that asked.
    Return whether there was such an answer.
    """
    params = message.get("params")
    answers = params.get("inputResponses") if isinstance(params, dict) else None
    given = [message.get("result"), *(answers.values() if isinstance(answers, dict) else ())]
    odd = [
        answer
        for answer in given
        if isinstance(answer, dict) and "action" in answer and not answer.keys() <= _MEMBERS
    ]
    for answer in odd:
        answer["content"] = None
    return bool(odd)
