"""The matrix: which check tests each sentence, and which wrong implementations prove the check.

A mutant is a deliberately wrong server or client, a few lines in the suite's own tests. The name of
each, what is wrong with it and which check it fails are data (`specs/conformance/mutants.yaml`), so
that the matrix can be printed without the tests; the tests make sure that data and code agree.
"""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from banking_server.conformance.requirements import load_requirements
from banking_server.conformance.specification import read_yaml

if TYPE_CHECKING:
    from banking_server.conformance.formats import Mutant


@cache
def load_mutants() -> tuple["Mutant", ...]:
    """Return every mutant, in the order of the file."""
    from banking_server.conformance.formats import Mutants

    return Mutants.model_validate(read_yaml("conformance/mutants.yaml")).mutants


def matrix_json() -> list[dict[str, Any]]:
    """Return the matrix, a row for each sentence."""
    rows: list[dict[str, Any]] = []
    for requirement in load_requirements():
        row: dict[str, Any] = {"id": requirement.id, "text": requirement.text}
        if requirement.excluded is not None:
            row |= {"excluded": requirement.excluded, "testable_if": requirement.testable_if}
        else:
            row["checks"] = [
                {
                    "id": check,
                    "mutants": [
                        {"name": mutant.name, "wrong": mutant.wrong}
                        for mutant in load_mutants()
                        if mutant.check == check
                    ],
                }
                for check in requirement.checks
            ]
        rows.append(row)
    return rows


def print_matrix(echo: Callable[[str], object]) -> None:
    """Print the matrix for people."""
    rows = matrix_json()
    for row in rows:
        echo(f"{row['id']}  {row['text']}")
        if "excluded" in row:
            echo(f"    not tested: {row['excluded']}")
        for check in row.get("checks", ()):
            echo(f"    {check['id']}")
            for mutant in check["mutants"]:
                echo(f"        {mutant['name']}: {mutant['wrong']}")
    tested = [row for row in rows if row.get("checks")]
    checks = {check["id"] for row in tested for check in row["checks"]}
    echo(
        f"{len(rows)} sentences: {len(tested)} tested by {len(checks)} checks, which "
        f"{len(load_mutants())} mutants fail; {len(rows) - len(tested)} not tested"
    )
