"""Writes the files of `specs/` that are made: python -m banking_server.conformance.publish

- `requirements.yaml`, from the sentences of the text and the registry of checks, in the grammar of
  the official suite;
- the tables of `conformance/README.md` between their marks, from the registry.
"""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from banking_server.chaining.directive import IDENTIFIER
from banking_server.conformance.requirements import (
    Requirement,
    Side,
    checks_of,
    load_needs,
    load_requirements,
)
from banking_server.conformance.specification import read_text

COMMAND: Final = "python -m banking_server.conformance.publish"
README: Final = "conformance/README.md"


def published() -> Mapping[str, str]:
    """Return what each file that is made should contain, by its path in `specs/`."""
    return {
        "requirements.yaml": _requirements(),
        README: _readme(read_text(README)),
    }


def main() -> None:
    """Write what is made, in a checkout of the repository."""
    folder = Path(__file__).parents[2] / "specs"
    if not folder.is_dir():
        sys.exit(f"There is no {folder}: run this in a checkout of the repository.")
    for name, content in published().items():
        file = folder / name
        if not file.is_file() or file.read_text("utf-8") != content:
            file.write_text(content, "utf-8")
            print(f"written: {file}")


def _requirements() -> str:
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


def _readme(text: str) -> str:
    """Return the text with the tables of what the checks need made anew between their marks."""
    sides: tuple[Side, ...] = ("server", "client")
    for side in sides:
        begin, end = f"<!-- made by {COMMAND}: {side} -->\n", "<!-- end -->"
        before, after = text.split(begin)
        text = before + begin + _needs_table(side) + end + after.split(end, maxsplit=1)[1]
    return text


def _needs_table(side: Side) -> str:
    prefix = f"tool-chaining-{side}-"
    needed: list[tuple[str | None, str]] = [(None, "nothing"), *load_needs().items()]
    rows = [f"| Checks `{prefix}…` | Read | Need |", "| --- | --- | --- |"]
    for reads, seen in _READS.items():
        for needs, words in needed:
            named = ", ".join(
                f"`{check.id.removeprefix(prefix)}`"
                for check in checks_of(side)
                if (check.reads, check.needs) == (reads, needs)
            )
            if named:
                rows.append(f"| {named} | {seen} | {words} |")
    return "".join(f"{row}\n" for row in rows)


_READS: Final = {"wire": "the messages", "printed": "what the client prints"}


if __name__ == "__main__":
    main()
