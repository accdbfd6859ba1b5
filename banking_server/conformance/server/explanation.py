"""Why a call may have brought no directive, for whoever wrote the scenario."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from banking_server.conformance.report.redaction import Redaction, shown_line
from banking_server.conformance.server.reading import content_of
from banking_server.conformance.target.connection import ToolCall
from banking_server.text import cut, one_line

TEXT: Final = 400
"""Characters of what came, and of one line of standard error, that are told."""

LINES: Final = 8
"""Lines of standard error that are told: the last ones, where the end of a traceback stands."""


def explained(
    fault: str, call: ToolCall, listed: Iterable[str], errors: str, redaction: Redaction
) -> str:
    """Return `fault`, and under it what came, whether the tool is listed, and standard error.

    Args:
        fault: What was expected and seen.
        call: The call that brought no directive.
        listed: The names of the tools that the server lists.
        errors: What the server wrote to its standard error meanwhile.
        redaction: Takes out the secrets, before anything is cut.
    """
    names = sorted(listed)
    lines = [fault]
    texts = [item.get("text") for item in content_of(call.final)]
    if said := " ".join(text for text in texts if isinstance(text, str)):
        lines.append(f"it said: {cut(one_line(redaction.text(said)), TEXT)}")
    if names and call.tool not in names:
        near = get_close_matches(call.tool, names, n=3, cutoff=0.5)
        known = f"did you mean {' or '.join(near)}?" if near else f"it has {', '.join(names)}"
        lines.append(f"the list of tools has no {call.tool!r}; {cut(known, TEXT)}")
    written = [line for line in redaction.text(errors).splitlines() if line.strip()]
    if written:
        lines.append("the server wrote to standard error:")
        lines += [f"| {cut(shown_line(line), TEXT)}" for line in written[-LINES:]]
    return "\n  ".join(lines)
