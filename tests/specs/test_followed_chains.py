"""What is told of a chain has one form, in whatever language it is written or read.

`next-tool.schema.json` has it. The proxy writes it in Python, and the bank's views read it in
JavaScript.
"""

import re

import pytest

from tool_chaining import IDENTIFIER, ChainResult, FollowUp, FollowUpStatus, Outcome
from tool_chaining.result import Step
from tool_chaining_proxy.chain import summary

from .files import SPECS
from .test_schemas import NEXT_TOOL, part, problems

pytestmark = pytest.mark.quick

FOLLOWED = NEXT_TOOL["$defs"]["followedChain"]["properties"]
FOLLOW_UP = NEXT_TOOL["$defs"]["followUp"]["properties"]
OUTCOMES = set(FOLLOWED["outcome"]["enum"])
STATUSES = set(FOLLOW_UP["status"]["enum"])

VIEWS = SPECS.parent / "banking_server" / "tools" / "views"


def chain(last: FollowUp | None) -> ChainResult:
    """Two calls that brought a result, and one that did not."""
    result = {"content": [], "structuredContent": {}, "isError": False}
    steps = (Step(1, "a", {}, result), Step(2, "b", {"n": 1}, result))
    return ChainResult("one of them", Outcome.FAILED, "It failed.", steps, last)


def test_the_summary_of_a_chain_matches_the_schema() -> None:
    unknown = FollowUp(3, "c", {}, FollowUpStatus.UNKNOWN, "time ran out")
    unlisted = FollowUp(3, "c", {}, FollowUpStatus.NOT_MADE, "it is not listed", listed=False)
    chains = [chain(last) for last in (None, unknown, unlisted)]
    written = [summary(each) for each in chains]
    for each, one in zip(chains, written, strict=True):
        assert problems(one, part("followedChain")) == []
        told = each.merged_json()["structuredContent"]["followUps"]
        assert problems(told, part("followUps")) == []
    assert written[-1]["followUps"][-1] == {"status": "not_made"}, "a name that no list has"
    assert {member for one in written for member in one} == set(FOLLOWED)
    assert {member for one in written for call in one["followUps"] for member in call} == set(
        FOLLOW_UP
    )
    assert set(Outcome) == OUTCOMES
    assert set(FollowUpStatus) == STATUSES


def test_the_views_read_the_members_of_the_schema() -> None:
    """Each member is read in one place: `followed` takes it out of a follow-up call by its name."""
    scripts = "\n".join(path.read_text(encoding="utf-8") for path in sorted(VIEWS.glob("*.js")))
    assert f'const CHAINING = "{IDENTIFIER}";' in scripts
    assert set(re.findall(r"\[CHAINING\]\??\.(\w+)", scripts)) == {"followUps"} <= set(FOLLOWED)
    [taken] = re.findall(r"calls\.map\(\(\{ (.+) \}\) =>", scripts)
    assert set(re.findall(r"(?:^|, )(\w+)", taken)) == set(FOLLOW_UP)
    [words] = re.findall(r"const NOT_DONE = \{(.+?)\};", scripts, re.DOTALL)
    assert set(re.findall(r"^ +(\w+):", words, re.MULTILINE)) == STATUSES
