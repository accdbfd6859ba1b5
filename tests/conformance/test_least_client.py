"""The useful minimum that `specs/guide.md` names passes every check of a MUST, and is as short."""

import re
from pathlib import Path

from tool_chaining_conformance.requirements import load_checks

from .least_client import LeastClient
from .support import UNTESTABLE, examine_client, statuses

GUIDE = (Path(__file__).parents[2] / "specs" / "guide.md").read_text("utf-8")


def test_the_useful_minimum_fails_no_check_of_a_must() -> None:
    judged = statuses(examine_client(LeastClient).judgements)
    failed = {check for check, status in judged.items() if status in ("WARNING", "FAILURE")}
    untested = {check for check, status in judged.items() if status == UNTESTABLE}
    left_out = re.search(r"without the SHOULDs (.*?)\. In Python", GUIDE, re.DOTALL)
    assert left_out is not None
    for check in failed:
        assert {each.id for each in load_checks()[check].requirements} <= set(
            re.findall(r"TC-[CD]-\d\d", left_out[1])
        )
    assert untested == set()


def test_the_guide_says_how_many_lines_it_has() -> None:
    text = (Path(__file__).parent / "least_client.py").read_text("utf-8")
    half = text.split("# The half: begin")[1].split("# The half: end")[0]
    lines = [line.strip() for line in half.splitlines()]
    code = [line for line in lines if line and not line.startswith(('"""', "#"))]
    assert f"In Python that is {len(code)} lines" in GUIDE
