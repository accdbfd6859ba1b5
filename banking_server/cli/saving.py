"""What `/save` of `chat` writes: the conversation as Markdown, for people.

What the person or the model said is quoted, what went to a server or came from it is indented: all
else is this program's, and nothing that was said can look like it.
"""

import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from banking_server.agent import Called, ChainStopped, Corrected, Declined, Run, Said
from banking_server.agent.conversation import footer
from banking_server.host.narrator import shown_to_user
from banking_server.host.plain import LINE, SHOWN
from banking_server.text import cut, one_line, printable


class Conversation:
    """What was said so far; the `record` of a chat."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._requests: list[str] = []

    def add(self, request: str, run: Run) -> None:
        """Keep a request and what came of it."""
        self._requests.append(printable("\n\n".join(_in_markdown(request, run))))

    def save(self, file: str) -> str:
        """Write all of it to a new file, and return what to tell.

        Raises ValueError with a sentence for people, also where there is such a file.
        """
        if not self._requests:
            raise ValueError("There is nothing to save yet.")
        path = Path(file)
        try:
            path = path.expanduser()
            # As what was shown, it is for nobody else: "x" never opens what is there.
            with open(path, "x", encoding="utf-8", opener=partial(os.open, mode=0o600)) as new:
                heading = f"# A conversation with {one_line(self._model, LINE)}"
                new.write("\n\n".join([heading, *self._requests]) + "\n")
        except FileExistsError:
            raise ValueError(f"Not saved: {path} exists already. Choose another name.") from None
        except (OSError, RuntimeError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise ValueError(f"Not saved: {path}: {why}.") from None
        number = len(self._requests)
        return f"Saved to {path}, as Markdown: {number} request{'' if number == 1 else 's'}."


def _in_markdown(request: str, run: Run) -> Iterator[str]:
    yield "## Request"
    yield _set_off("> ", request)
    for entry in run.transcript:
        match entry:
            case Said():
                yield _set_off("> ", entry.text)
            case Called():
                whose = "the model" if entry.by == "model" else "a directive of the server"
                failed = ", which failed" if entry.step.result.is_error else ""
                yield f"Call of {one_line(entry.step.tool, LINE)}, decided by {whose}{failed}:"
                arguments = json.dumps(entry.step.arguments, ensure_ascii=False)
                for text in (arguments, *shown_to_user(entry.step.result)):
                    yield _set_off("    ", cut(text, SHOWN))
            case ChainStopped():
                yield f"The chain ended: {one_line(entry.detail, LINE)}."
            case Declined():
                yield f"Not called: {entry.tool.name}."
            case Corrected():
                yield f"No call was made: {one_line(entry.problem, LINE)}."
            case _:
                pass
    yield "## Answer"
    yield run.report() if run.answer is None else _set_off("> ", run.answer)
    yield footer(run)


def _set_off(by: str, text: str) -> str:
    """Put something before each line, whatever counts as the end of one."""
    return "\n".join(f"{by}{line}".rstrip() for line in text.splitlines())
