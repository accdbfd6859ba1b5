"""The matrix: which check tests each sentence, and which wrong implementations prove the check.

`python -m banking_server.conformance.traceability` prints it.

A mutant is a deliberately wrong server or client, a few lines in the suite's own tests. The name of
each, what is wrong with it and which check it fails are data (`specs/conformance/mutants.yaml`), so
that the matrix can be printed without the tests; the tests make sure that data and code agree.
"""

from functools import cache

from banking_server.conformance.formats import Mutant, Mutants
from banking_server.conformance.requirements import load_requirements
from banking_server.conformance.specification import read_yaml


@cache
def load_mutants() -> tuple[Mutant, ...]:
    """Return every mutant, in the order of the file."""
    return Mutants.model_validate(read_yaml("conformance/mutants.yaml")).mutants


def main() -> None:
    """Print the matrix for people."""
    sentences = load_requirements()
    for sentence in sentences:
        print(f"{sentence.id}  {sentence.text}")
        if sentence.excluded is not None:
            print(f"    not tested: {sentence.excluded}")
        for check in sentence.checks:
            print(f"    {check}")
            for mutant in load_mutants():
                if mutant.check == check:
                    print(f"        {mutant.name}: {mutant.wrong}")
    tested = [sentence for sentence in sentences if sentence.excluded is None]
    checks = {check for sentence in tested for check in sentence.checks}
    print(
        f"{len(sentences)} sentences: {len(tested)} tested by {len(checks)} checks, which "
        f"{len(load_mutants())} mutants fail; {len(sentences) - len(tested)} not tested"
    )


if __name__ == "__main__":
    main()
