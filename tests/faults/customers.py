"""Customers who pay and look at their balance all the time, and write down what they are told."""

import itertools
import random
import re
import time
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING, Any

from ..kit.command import PATIENCE
from ..kit.servers import request_of, tool_call
from ..kit.words import BALANCE, CONFIRM, PREPARE

if TYPE_CHECKING:
    from .runs import Run

GIVES_UP, GOES_AWAY = 0.3, 0.03
"""How probably a customer does not repeat a confirmation; goes away in the middle of one."""

NOT_DONE = re.compile(r"nothing was (done|changed)", re.IGNORECASE)
BALANCE_SAID = re.compile(r'"posted":([\d.]+)')
CODE = re.compile(r"code for transfer (\w+) is (\d{6})\.")


class Customer:
    """Pays from one account to another, one minor unit a wish, at whichever of the servers."""

    def __init__(self, number: int, run: "Run") -> None:
        self.number, self.run, self.journal, self.over = number, run, run.journal, run.over
        self.source, self.target = f"acc_savings_00{number}", f"acc_checking_00{number}"
        self.asked, self.acknowledged = set[str](), set[str]()
        self.wishes = itertools.count()

    def call(self, tool: str, arguments: dict[str, Any], *, waits: bool = True) -> str:
        """Return the answer; it is empty if none came, so that the effect is not known."""
        while True:
            server = random.choice(self.run.servers)
            connection = HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
            try:
                connection.connect()
                break
            except OSError:  # Nothing was sent.
                if self.over.is_set():
                    return ""
                time.sleep(0.05)
        token = server.token(f"CUST00{self.number}")
        with closing(connection), suppress(OSError, HTTPException):
            connection.request("POST", "/mcp", *request_of(tool_call(tool, arguments), token))
            if waits:
                answer = connection.getresponse().read().decode()
                self.journal.write("calls answered")
                return answer
            time.sleep(random.uniform(0, 0.02))
        return ""

    def pay(self) -> None:
        """Prepare and confirm one wish after another, each with a memo of its own."""
        accounts = {"fromAccountId": self.source, "toAccountId": self.target, "amount": 0.01}
        memo = ""
        while not self.over.is_set():
            memo = memo or f"{self.number}.{next(self.wishes)}"
            if prepared := CODE.search(self.call(PREPARE, {**accounts, "memo": memo})):
                self.journal.write("prepared", memo, prepared[1], sync=True)
                self.confirm(memo, *prepared.groups())
                memo = ""

    def confirm(self, memo: str, transfer: str, code: str) -> None:
        """Confirm, and perhaps again, if it is not known to be done."""
        yes = {"transferId": transfer, "action": "confirm", "confirmationCode": code}
        self.asked.add(memo)
        self.journal.write("asked", memo, transfer)
        while True:
            waits = random.random() >= GOES_AWAY
            if not waits:
                self.journal.write("clients gone in a confirm")
            answer = self.call(CONFIRM, yes, waits=waits)
            if '"status":"posted"' in answer and transfer in answer:
                self.journal.write("posted", memo, transfer, sync=True)
                self.acknowledged.add(memo)
                return
            kind = "refused" if NOT_DONE.search(answer) else "unknown"
            self.journal.write(kind, memo, transfer)
            if random.random() < GIVES_UP:
                return
            time.sleep(0.05)

    def watch(self) -> None:
        """Read the balance: never less than it was or than is acknowledged, or more than asked."""
        seen = before = self.run.before[self.target]
        while not self.over.is_set():
            least = max(seen, before + len(self.acknowledged))
            answer = self.call(BALANCE, {"accountId": self.target})
            if found := BALANCE_SAID.search(answer):
                seen, most = round(100 * float(found[1])), before + len(self.asked)
                kind = "reads checked" if least <= seen <= most else "wrong reads"
                self.journal.write(kind, self.target, seen, least, most)
            time.sleep(0.02)
