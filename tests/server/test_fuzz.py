"""Whatever is sent over HTTP, as much as there is of it: each request answered once, nothing lost.

Messages of a usual conversation are changed at random: the usual run sends some dozens, `--ci` some
hundreds and `--nightly` some thousands. The seed is the same each time, and a failure says what was
sent last. `test_stdio.py` has what is odd in a line.
"""

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import anyio
import pytest

from banking_server.server.open_bank import utc_now

from ..bank.support import check_books, sql
from ..kit.command import PATIENCE
from ..kit.servers import request_of, tool_call
from ..kit.words import CONFIRM, HANDOFF, PREPARE, STATEMENT, TO_SAVINGS
from .in_memory import LIST_TOOLS, Bank, bank_in_memory

AT_ONCE = 8
"""Requests that are under way at the same time."""

Json = dict[str, Any]
PAYMENT = {**TO_SAVINGS, "amount": 0.07}
CONFIRMED = {"transferId": "<transfer>", "action": "confirm", "confirmationCode": "<code>"}

USUAL: list[Json] = [
    tool_call(PREPARE, PAYMENT),
    tool_call(PREPARE, {"fromAccountId": "acc_checking_001", "amount": 250}),
    tool_call(CONFIRM, CONFIRMED),
    tool_call(STATEMENT, {"accountId": "acc_savings_001", "days": 30}),
    tool_call(HANDOFF, {"reason": "A question"}),
    tool_call("multiplex_tools", {"tools": [{"params": {"name": PREPARE, "arguments": PAYMENT}}]}),
    {**LIST_TOOLS, "method": "resources/read", "params": {"uri": "bank://guide"}},
]
"""Texts of the form `<name>` stand for what the conversation has told, or for what is in `RAW`."""

RAW: dict[str, str] = {
    "not a number": "NaN",
    "infinite": "1e999",
    "long": "1" * 5000,
    "no json": "[1,]",
}
"""What is no JSON, or is read in one way here and in another there."""

VALUES: list[Any] = [
    *(None, True, -1, 2**53 + 1, 10**300, 0.001, -0.0, [], {}, [[1]], {"\ud800": None}),
    *("", "\x00", "\u202e\x1b[2J", "\ud800", "🏦", "x" * 3000, *[f"<{name}>" for name in RAW]),
]


def objects_in(value: Any) -> Iterator[Json]:
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from objects_in(each)


class Conversation:
    """What was said so far, of which later messages make use."""

    def __init__(self, bank: Bank, seed: int) -> None:
        self.bank, self.random = bank, Random(seed)
        self.known: dict[str, str] = {}
        self.posted: set[str] = set()
        """Transfers that an answer called posted."""

    def message(self) -> tuple[bytes, dict[str, str]]:
        """Return a message, changed at random, and the headers of the one that it was."""
        body, headers = request_of(self.random.choice(USUAL), None)
        message = json.loads(body)
        for _ in range(self.random.choice([0, 0, 0, 1, 1, 2])):
            changed = self.random.choice(list(objects_in(message)))
            value = deepcopy(self.random.choice(VALUES))  # A shared one might get into itself.
            changed[self.random.choice([*changed, "unknown"])] = value
        sent = json.dumps(message)
        for name, value in [*RAW.items(), *self.known.items()]:
            sent = sent.replace(f'"<{name}>"', value)
        return sent.encode(), {name: headers[name] for name in headers if name.startswith("Mcp-")}

    async def send(self) -> None:
        """Send a message, and look at the answer."""
        sent, headers = self.message()
        token = self.bank.token("CUST001", *self.random.choice([(), (), (), ("bank:read",)]))
        with anyio.fail_after(PATIENCE):
            answer = await self.bank.send(sent, token, **headers)
        assert answer.status_code < 500, (sent, answer.text)
        if answer.status_code == 200:
            said = answer.json()
            assert said["id"] == json.loads(sent)["id"], (sent, said)
            self._learn(said)

    def _learn(self, answer: Json) -> None:
        found = re.findall(r"code for transfer (tr_[0-9a-f]{16}) is (\d{6})", json.dumps(answer))
        for transfer, code in found:
            self.known = {"transfer": json.dumps(transfer), "code": json.dumps(code)}
        for each in objects_in(answer.get("result")):
            if each.get("status") == "posted" and isinstance(each.get("transferId"), str):
                self.posted.add(each["transferId"])


async def send_all(database: Path, count: int) -> set[str]:
    async with bank_in_memory(database) as bank:
        conversation = Conversation(bank, seed=count)
        for _ in range(0, count, AT_ONCE):
            async with anyio.create_task_group() as at_once:
                for _ in range(AT_ONCE):
                    at_once.start_soon(conversation.send)
        assert (await bank.send(LIST_TOOLS)).status_code == 200
    return conversation.posted


def test_requests(
    full: Path, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    """The books are sound, every transfer that was called posted is, and the log has no fault."""
    option = request.config.getoption
    count = 10_000 if option("nightly") else 500 if option("ci") else 40
    called_posted = anyio.run(send_all, full, count)
    assert "Traceback" not in caplog.text, caplog.text[-5000:]
    check_books(full, utc_now())
    posted = sql(full, "SELECT transfer_id FROM transfer WHERE status = 'posted'")
    assert {transfer for (transfer,) in posted} == called_posted
    assert called_posted, "some were to be"
