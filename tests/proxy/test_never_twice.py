"""What only a proxy can repeat: the host does not get its result, and makes its call again.

The rest of the rules is in the client suite, which `test_suites.py` runs through the proxy.
"""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from tool_chaining_proxy.client_side import callers

from ..kit.stdio import lines_of
from .scripted import WAYS, Shop, outcome, prepare, said
from .wire import CHAINING, JSON, NEW, OLD, PROXY, proxy_in_a_thread, wire

pytestmark = pytest.mark.anyio


# --- a result that is not delivered ---------------------------------------------------------------


@pytest.mark.parametrize(("way", "revision"), WAYS)
async def test_a_call_repeated_after_a_cancellation_does_not_pay_twice(
    way: str, revision: str, tmp_path: Path
) -> None:
    """It has a time limit of its own, and its model begins again."""
    answers = {"pay": [said("Paid.", "notify")], "notify": ["waits", said("Done.")]}
    shop = Shop(tmp_path, revision, answers=answers)
    async with shop.host(way) as host:
        async with anyio.create_task_group() as group:
            group.start_soon(prepare, host)
            await shop.until(tool="notify")
            group.cancel_scope.cancel()
        await shop.until(cancelled="notify")
        assert outcome(await prepare(host)) == "declined"
        assert shop.made() == [{"to": "Ann", "id": "0"}]
        # The lost answer of the notification is that of its tool, the payment is of the wish alone.
        await prepare(host, "Bob")
        assert len(shop.made()) == 2


def test_a_call_repeated_after_a_cancellation_during_its_answer_does_not_pay_twice(
    tmp_path: Path,
) -> None:
    """The host reads slowly, and cancels what it has half read: the whole result arrives."""
    shop = Shop(tmp_path, answers={"pay": [said("Paid. " * 15_000)]})
    call = {"name": "prepare", "arguments": {"to": "Ann"}}
    with lines_of([*PROXY, "--consent", "all", "--", *shop.command]) as proxy:
        proxy.open({})
        proxy.send({"id": 2, "method": "tools/call", "params": call})
        begun = proxy.stdout.read(1)
        proxy.send({"method": "notifications/cancelled", "params": {"requestId": 2}})
        proxy.send({"id": 3, "method": "tools/call", "params": {"name": "notify"}})
        anyio.run(lambda: shop.until(tool="notify"))  # It has read the cancellation before.
        assert json.loads(begun + proxy.stdout.readline())["id"] == 2
        assert proxy.said()["id"] == 3
        [*_, told] = proxy.call(4, "prepare", {"to": "Ann"})["result"]["content"]
        assert "an earlier call may have taken effect" in told["text"]
    assert len(shop.made()) == 1


def test_the_record_over_stdio_outlives_request_server_and_session(tmp_path: Path) -> None:
    """Whatever ends meanwhile: the request, the server, or the host's session."""
    answers = {"pay": [said("Paid.", "notify")], "notify": ["waits", "ends"]}
    shop = Shop(tmp_path, answers=answers)
    call = {"name": "prepare", "arguments": {"to": "Ann"}}
    with lines_of([*PROXY, "--consent", "all", "--", *shop.command]) as proxy:
        proxy.open({})
        proxy.send({"id": 2, "method": "tools/call", "params": call})
        anyio.run(lambda: shop.until(tool="notify"))
        proxy.send({"method": "notifications/cancelled", "params": {"requestId": 2}})
        assert "error" in proxy.call(3, "notify", {})
        proxy.open({})
        [*_, told] = proxy.call(4, "prepare", {"to": "Ann"})["result"]["content"]
        assert "an earlier call may have taken effect" in told["text"]
    assert len(shop.made()) == 1


# --- whose record it is, over HTTP ----------------------------------------------------------------


async def wishes(url: str, revision: str, header: str, *to: str, **members: Any) -> list[str]:
    """Return the outcomes of chains of one caller."""
    async with wire(url, revision, authorization=header, **members) as caller:
        results = [await caller.call("prepare", {"to": name}) for name in to]
    return [str(result["_meta"][CHAINING]["outcome"]) for result in results]


async def test_the_record_of_an_authorization_header_counts_equal_first_calls_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(callers, "MAX_RECORDS", 2)
    shop = Shop(tmp_path, NEW, answers={"pay": ["ends", said("Paid.")]})
    mute: JSON = {"capabilities": {}}
    with proxy_in_a_thread(shop.options(), idle=0.1) as url:
        assert await wishes(url, NEW, "1", "Ann", "Ann", "Bob", **mute) == [
            "failed",
            "declined",
            "completed",
        ]
        # The record outlives the server's process, which is closed when it is not used.
        await shop.until(closed=True)
        # One person's yes ends nothing for the others, and other headers are other people.
        assert await wishes(url, NEW, "1", "Ann") == ["completed"]
        assert await wishes(url, NEW, "1", "Ann", **mute) == ["declined"]
        assert await wishes(url, NEW, "2", "Ann", **mute) == ["completed"]
        assert await wishes(url, NEW, "1", "Ann", **mute) == ["declined"]

        # Headers without a doubt are forgotten first.
        for header in ("3", "4", "5"):
            await wishes(url, NEW, header)
        assert await wishes(url, NEW, "1", "Ann", **mute) == ["declined"]


async def test_the_record_belongs_to_one_session(tmp_path: Path) -> None:
    shop = Shop(tmp_path, answers={"pay": ["ends", said("Paid.")]})
    with proxy_in_a_thread(shop.options()) as url:
        assert await wishes(url, OLD, "1", "Ann", "Bob", capabilities={}) == ["failed", "declined"]
        # Another session is another conversation.
        assert await wishes(url, OLD, "1", "Ann", capabilities={}) == ["completed"]
