"""Writes `specs/requirements.yaml`: python tests/specs/publish.py

The file is made from the sentences of the text and the registry of checks. Its format is that of
the official suite.
"""

from collections.abc import Iterator
from typing import Final

from tool_chaining_conformance.names import IDENTIFIER
from tool_chaining_conformance.requirements import Requirement, load_requirements
from tool_chaining_conformance.specification import SPECS

COMMAND: Final = "python tests/specs/publish.py"


def requirements_yaml() -> str:
    """Return the content of the file."""
    rows = "".join(f"{line}\n" for row in load_requirements() for line in _row(row))
    return f"""\
# Traceability: each normative sentence of tool-chaining.md, word for word, with the checks that
# test it. A row has either `check` (one id or a list) or `excluded` with `testable_if`. A sentence
# with MUST or MUST NOT is judged FAILURE, one with SHOULD or SHOULD NOT is judged WARNING. Do not
# edit this file: it is made from tool-chaining.md and conformance/checks.yaml by
# {COMMAND}
extension: {IDENTIFIER}
spec: tool-chaining.md
requirements:
{rows}"""


def _row(requirement: Requirement) -> Iterator[str]:
    yield f"  - id: {requirement.id}"
    match requirement.checks:
        case ():
            pass
        case (check,):
            yield f"    check: {check}"
        case checks:
            yield "    check:"
            yield from (f"      - {check}" for check in checks)
    yield f"    text: {_quoted(requirement.text)}"
    if requirement.excluded is not None:
        yield f"    excluded: {_quoted(requirement.excluded)}"
        yield f"    testable_if: {_quoted(requirement.testable_if or '')}"


def _quoted(text: str) -> str:
    """Return a text as YAML writes it between single quotes."""
    return "'" + text.replace("'", "''") + "'"


if __name__ == "__main__":
    (SPECS / "requirements.yaml").write_text(requirements_yaml(), "utf-8")
