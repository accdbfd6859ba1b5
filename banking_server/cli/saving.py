"""What `/save` of `chat` writes: the conversation as Markdown, for people.

The words of the person and the model are quoted. What a server got or sent is indented. Every other
line is this program's own, so that no text from outside can look like one.
"""

import json
import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from banking_server.agent import Called, Note, Run
from banking_server.host.narrator import shown_to_user
from banking_server.host.plain import LINE, SHOWN
from tool_chaining.text import cut, one_line, printable


def save(model: str, requests: Sequence[tuple[str, Run]], file: str) -> str:
    """Write a conversation with a model to a new file, and return what to tell.

    Raises ValueError with a sentence for people, also where there is such a file.
    """
    if not requests:
        raise ValueError("There is nothing to save yet.")
    parts = [f"# A conversation with {one_line(model, LINE)}"]
    parts += [printable("\n\n".join(_in_markdown(request, run))) for request, run in requests]
    path = Path(file)
    try:
        path = path.expanduser()
        # As what was shown, it is for nobody else: "x" never opens what is there.
        with open(path, "x", encoding="utf-8", opener=partial(os.open, mode=0o600)) as new:
            new.write("\n\n".join(parts) + "\n")
    except FileExistsError:
        raise ValueError(f"Not saved: {path} exists already. Choose another name.") from None
    except (OSError, RuntimeError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ValueError(f"Not saved: {path}: {why}.") from None
    number = len(requests)
    return f"Saved to {path}, as Markdown: {number} request{'' if number == 1 else 's'}."


def _in_markdown(request: str, run: Run) -> Iterator[str]:
    yield "## Request"
    yield _set_off("> ", request)
    for entry in run.transcript:
        match entry:
            case Called():
                whose = "the model" if entry.by == "model" else "a directive of the server"
                failed = ", which failed" if entry.step.result.is_error else ""
                yield f"Call of {one_line(entry.step.tool, LINE)}, decided by {whose}{failed}:"
                arguments = json.dumps(entry.step.arguments, ensure_ascii=False)
                for text in (arguments, *shown_to_user(entry.step.result)):
                    yield _set_off("    ", cut(text, SHOWN))
            case Note():
                yield one_line(entry.text, LINE)
    yield "## Answer"
    yield run.report() if run.answer is None else _set_off("> ", run.answer)


def _set_off(by: str, text: str) -> str:
    """Return a text with `by` before each line."""
    return "\n".join(f"{by}{line}".rstrip() for line in text.splitlines())
