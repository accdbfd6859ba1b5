"""Every kind of client check is code, a word of the published format, and says when it holds."""

import json

import pytest

from tool_chaining_conformance.client.checks import KINDS
from tool_chaining_conformance.specification import SPECS

pytestmark = pytest.mark.quick

CONFORMANCE = SPECS / "conformance"


def test_the_kinds_in_the_code_are_those_that_scripts_may_name() -> None:
    schema = json.loads((CONFORMANCE / "schemas" / "client-script.schema.json").read_text("utf-8"))
    allowed = schema["$defs"]["ScriptCheck"]["properties"]["assert"]["enum"]
    assert set(KINDS) == set(allowed)
    assert len(allowed) == len(set(allowed))
    assert all(judge.__doc__ for judge in KINDS.values())
