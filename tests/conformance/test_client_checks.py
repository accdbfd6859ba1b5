"""Every kind of client check is code, a word of the published format, and explained."""

import json
import re

import mcp.types
import pytest
from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS

from banking_server.conformance import message
from banking_server.conformance.client import mock_server
from banking_server.conformance.client.checks import KINDS
from banking_server.packaged import packaged

pytestmark = pytest.mark.quick

CONFORMANCE = packaged("specs") / "conformance"


def test_the_kinds_in_the_code_are_those_that_scripts_may_name() -> None:
    schema = json.loads((CONFORMANCE / "schemas" / "client-script.schema.json").read_text("utf-8"))
    allowed = schema["$defs"]["ScriptCheck"]["properties"]["assert"]["enum"]
    assert set(KINDS) == set(allowed)
    assert len(allowed) == len(set(allowed))


def test_every_kind_is_explained_to_runners_in_other_languages() -> None:
    readme = (CONFORMANCE / "README.md").read_text("utf-8")
    section = readme.split("\n## Client scripts\n")[1].split("\n## ")[0]
    section = section[section.index("| `assert` |") :]
    assert set(re.findall(r"^\| `(\w+)`(?: \*)? \|", section, re.MULTILINE)) == {"assert", *KINDS}


def test_what_is_written_down_of_the_protocol_is_what_the_sdk_has() -> None:
    assert mcp.types.CLIENT_CAPABILITIES_META_KEY == message.CLIENT_CAPABILITIES_KEY
    assert mcp.types.CLIENT_INFO_META_KEY == message.CLIENT_INFO_KEY
    assert mcp.types.PROTOCOL_VERSION_META_KEY == message.PROTOCOL_VERSION_KEY
    assert mcp.types.SERVER_INFO_META_KEY == message.SERVER_INFO_KEY
    assert mcp.types.METHOD_NOT_FOUND == message.METHOD_NOT_FOUND
    assert mcp.types.INVALID_PARAMS == mock_server.INVALID_PARAMS
    assert mcp.types.UNSUPPORTED_PROTOCOL_VERSION == mock_server.UNSUPPORTED_PROTOCOL_VERSION
    assert HANDSHAKE_PROTOCOL_VERSIONS == mock_server.HANDSHAKE_VERSIONS
