"""The calls that are sent, as whole HTTP requests, and what a right answer to each holds."""

import json
from collections.abc import Iterator
from typing import Any, Final

from banking_server.benchmark import bare
from banking_server.benchmark.load import ANY_CODE, ANY_TRANSFER, Step
from banking_server.chaining import CLIENT_EXTENSION

PROTOCOL: Final = "2026-07-28"

_META: Final = {
    "io.modelcontextprotocol/protocolVersion": PROTOCOL,
    "io.modelcontextprotocol/clientInfo": {"name": "banking-server benchmark", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {
        "extensions": {CLIENT_EXTENSION.identifier: CLIENT_EXTENSION.settings()}
    },
}
_RIGHT: Final = '"isError":false'


def message(tool: str, arguments: dict[str, Any]) -> bytes:
    """Return a `tools/call` as JSON, complete in itself: no connection has to be opened before."""
    params = {"name": tool, "arguments": arguments, "_meta": _META}
    wire = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return json.dumps(wire, separators=(",", ":")).encode()


class Caller:
    """Makes the requests of one caller of the server at `port`."""

    def __init__(self, port: int, token: str | None = None) -> None:
        self._port = port
        self._token = token

    def _request(self, tool: str, arguments: dict[str, Any]) -> str:
        body = message(tool, arguments).decode()
        lines = [
            "POST /mcp HTTP/1.1",
            f"Host: 127.0.0.1:{self._port}",
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            f"MCP-Protocol-Version: {PROTOCOL}",
            "Mcp-Method: tools/call",
            f"Mcp-Name: {tool}",
            *([f"Authorization: Bearer {self._token}"] if self._token else []),
            f"Content-Length: {len(body.encode())}",
        ]
        return "\r\n".join([*lines, "", body])

    def constant(self) -> Step:
        """Call the bare server's one tool."""
        return Step("bare", self._request(bare.TOOL, {}), (_RIGHT, bare.SAYS, '"nextTool":'))

    def locked_prepare(self, account: str, to: str) -> Step:
        """Ask for a transfer from a locked account."""
        arguments = {"fromAccountId": account, "toAccountId": to, "amount": 250}
        expect = (_RIGHT, '"status":"account_locked"', '"nextTool":{"tool":"request_agent_handoff"')
        return Step("prepare", self._request("prepare_money_transfer", arguments), expect)

    def balance(self, account: str) -> Step:
        """Ask for an account's balance."""
        expect = (_RIGHT, f'"accountId":"{account}","posted":')
        return Step("balance", self._request("get_account_balance", {"accountId": account}), expect)

    def accounts(self, one: str) -> Step:
        """Ask for the list of accounts, of which `one` is one."""
        expect = (_RIGHT, f'"accountId":"{one}"')
        return Step("list", self._request("list_accounts", {}), expect)

    def statement(self, account: str) -> Step:
        """Ask for the last entries of an account that has more than a page of them."""
        arguments = {"accountId": account, "days": 365}
        expect = (_RIGHT, f'"accountId":"{account}"', '"entries":[{', '"nextCursor":"')
        return Step("statement", self._request("get_account_statement", arguments), expect)

    def pair(self, account: str, to: str, memo: str) -> Iterator[Step]:
        """Prepare a transfer of one minor unit, and confirm it.

        The memo has to be another for each connection: identical transfers are one.
        """
        arguments = {"fromAccountId": account, "toAccountId": to, "amount": 0.01, "memo": memo}
        pending = (_RIGHT, '"status":"pending"', f'"memo":"{memo}"')
        yield Step(
            "prepare",
            self._request("prepare_money_transfer", arguments),
            pending,
            hands_on=True,
        )
        confirm = {"transferId": ANY_TRANSFER, "action": "confirm", "confirmationCode": ANY_CODE}
        yield Step(
            "confirm",
            self._request("confirm_or_cancel_money_transfer", confirm),
            (_RIGHT, '"status":"posted"', f'"memo":"{memo}"'),
        )

    def to_and_fro(self, one: str, other: str, memo: str) -> tuple[Step, ...]:
        """Move money from one account to the other and back, so that it never runs out."""
        return (*self.pair(one, other, memo), *self.pair(other, one, memo))
