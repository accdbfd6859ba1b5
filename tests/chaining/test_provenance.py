"""Reading what a follow-up request says about its chain."""

import pytest

from banking_server.chaining import IDENTIFIER, read_provenance

FIRST = {"chainId": "c", "level": 1}
LATER = {"chainId": "c", "level": 2, "previousTool": "t"}


@pytest.mark.parametrize(
    "wire",
    [
        *(None, [], "c", {}, {"chainId": "c"}, {"level": 1}, {"chain_id": "c", "level": 1}),
        *({**FIRST, "chainId": id_} for id_ in ("", "c" * 129, 5, None, "\ud800")),
        *({**FIRST, "level": level} for level in (0, -1, True, "1", 1.5, None, 2)),
        *({**FIRST, "previousTool": tool} for tool in (None, "t")),
        *({**LATER, "previousTool": tool} for tool in (None, "", 5)),
        {**LATER, "level": 1e400},
    ],
)
def test_malformed_is_ignored(wire: object) -> None:
    assert read_provenance({IDENTIFIER: wire}) is None
