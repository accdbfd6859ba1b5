"""The load: whole HTTP requests as bytes over kept connections, and a look at every answer."""

import asyncio
import itertools
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tool_chaining import CLIENT_EXTENSION

CUSTOMER, LOCKED, PAID_TO = "CUST001", "acc_checking_001", "acc_savings_001"
OTHER = "acc_everyday_001"
MONEY = {"fromAccountId": LOCKED, "toAccountId": PAID_TO, "amount": 250}
MANY = 16
"""Connections at once."""

VERSION = "2026-07-28"
_OF_MCP = "io.modelcontextprotocol"
_META = {
    f"{_OF_MCP}/protocolVersion": VERSION,
    f"{_OF_MCP}/clientInfo": {"name": "benchmark", "version": "1"},
    f"{_OF_MCP}/clientCapabilities": {
        "extensions": {CLIENT_EXTENSION.identifier: CLIENT_EXTENSION.settings()}
    },
}
_LENGTH = re.compile(r"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)
_HANDED_ON = re.compile(r"code for transfer (tr_[0-9a-f]{16}) is (\d{6})\.")


@dataclass(frozen=True)
class Step:
    """One request of a connection, and what a right answer holds, besides that it is no error."""

    label: str
    """Under which its answers are counted."""
    request: bytes | Callable[[str, str], bytes]
    """Or what makes it of the transfer that was prepared last, and its code."""
    expect: tuple[str, ...]


Connections = Sequence[Sequence[Step]]


def call(tool: str, arguments: dict[str, Any]) -> bytes:
    """Return a `tools/call` as JSON, complete in itself: no session has to be opened before."""
    params = {"name": tool, "arguments": arguments, "_meta": _META}
    wire = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return json.dumps(wire, separators=(",", ":")).encode()


@dataclass(frozen=True)
class Caller:
    """Makes the requests of one caller of the server at `port`, and says what answers hold."""

    port: int
    token: str = ""

    def request(self, tool: str, **arguments: Any) -> bytes:
        body = call(tool, arguments)
        lines = [
            "POST /mcp HTTP/1.1",
            f"Host: 127.0.0.1:{self.port}",
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            f"MCP-Protocol-Version: {VERSION}",
            "Mcp-Method: tools/call",
            f"Mcp-Name: {tool}",
            *([f"Authorization: Bearer {self.token}"] if self.token else []),
            f"Content-Length: {len(body)}",
        ]
        return "\r\n".join([*lines, "", ""]).encode() + body

    def locked_prepare(self, **money: Any) -> Step:
        directive = '"nextTool":{"tool":"request_agent_handoff"'
        expect = ('"status":"account_locked"', directive)
        return Step("prepare", self.request("prepare_money_transfer", **money), expect)

    def balance(self, account: str) -> Step:
        expect = (f'"accountId":"{account}","posted":',)
        return Step("balance", self.request("get_account_balance", accountId=account), expect)

    def to_and_fro(self, here: str, there: str, memo: str) -> list[Step]:
        """Prepare and confirm a transfer of one minor unit, and one back, so that none runs out.

        The memo has to be another for each connection: identical transfers are one.
        """

        def confirm(transfer: str, code: str) -> bytes:
            yes = {"transferId": transfer, "action": "confirm", "confirmationCode": code}
            return self.request("confirm_or_cancel_money_transfer", **yes)

        steps = []
        for source, target in ((here, there), (there, here)):
            money = {"fromAccountId": source, "toAccountId": target, "amount": 0.01, "memo": memo}
            request = self.request("prepare_money_transfer", **money)
            steps.append(Step("prepare", request, ('"status":"pending"', memo)))
            steps.append(Step("confirm", confirm, ('"status":"posted"', memo)))
        return steps


def of_the_bank(one: Caller) -> dict[str, Connections]:
    """Return what each of the connections sends to the bank, by row."""
    return {
        "locked": [[one.locked_prepare(**MONEY)]] * MANY,
        "balance": [[one.balance(PAID_TO)]] * MANY,
        "pair": [one.to_and_fro(PAID_TO, OTHER, f"connection {each}") for each in range(MANY)],
    }


async def measure(port: int, connections: Connections, seconds: float) -> Counter[str]:
    """Send the steps of each connection over and over, one request under way on each.

    It ends after `seconds`, when each connection has made its steps once. Returns the number of
    answers by label. Raises AssertionError for an answer that is wrong.
    """
    answers: Counter[str] = Counter()
    end = time.perf_counter() + seconds

    async def converse(steps: Sequence[Step]) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        handed = ("", "")
        for made, step in enumerate(itertools.cycle(steps)):
            if made >= len(steps) and time.perf_counter() > end:
                break
            request, expect = step.request, step.expect
            if callable(request):
                request, expect = request(*handed), (*expect, handed[0])
            writer.write(request)
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            body = (await reader.readexactly(int(_LENGTH.findall(head)[0]))).decode()
            answers[step.label] += 1
            assert head.startswith("HTTP/1.1 200 "), head + body
            assert all(part in body for part in ('"isError":false', *expect)), step.label + body
            if found := _HANDED_ON.search(body):
                handed = (found[1], found[2])
        writer.close()

    await asyncio.gather(*map(converse, connections))
    return answers
