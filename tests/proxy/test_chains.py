"""Chains through the proxy: one call for the client, each step at the server."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp.server.apps import APP_MIME_TYPE, EXTENSION_ID

from .pipe import (
    ANSWERS,
    CAPABILITIES,
    CHAINING,
    JSON,
    NEW,
    OLD,
    PROXY,
    STRANGE,
    Pipe,
    Refused,
    noted,
    pipe,
    soon,
)


@pytest.fixture(scope="module", params=[OLD, NEW])
def client(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pipe]:
    """A client of either revision, and the proxy in front of the strange server."""
    folder = tmp_path_factory.mktemp("strange")
    notes, rules = folder / "notes", folder / "rules"
    rules.write_text("# Who would not?\nask destroy\nallow *\n")
    command = [*PROXY, "--consent", str(rules), "--", *STRANGE]
    with pipe(command, request.param, STRANGE_NOTES=str(notes)) as one:
        one.notes = notes
        yield one


def texts(result: JSON) -> list[str]:
    return [item["text"] for item in result["content"]]


def followed(result: JSON) -> JSON:
    told: JSON = result["_meta"][CHAINING]
    return told


def test_a_chain_is_one_result_of_the_first_tool(client: Pipe) -> None:
    before = len(noted(client))
    result = client.call("first")
    one, two, words = texts(result)
    assert (one, two) == ("One.", "Two.")
    assert "That call was made for you: do not make it again." in words
    assert result["content"][2]["annotations"] == {"audience": ["assistant"]}
    assert result["structuredContent"] == {"of": "first"}
    assert result["x-first"] == 1
    assert result["_meta"]["com.strange/meta"] == "One."
    assert "nextTool" not in result["_meta"]
    told = followed(result)
    assert told == {
        "chainId": told["chainId"],
        "outcome": "completed",
        "followUps": [
            {
                "tool": "second",
                "arguments": {},
                "fate": "made",
                "isError": False,
            }
        ],
    }
    (line,) = noted(client)[before:]
    assert json.loads(line.removeprefix("second ")) == {
        "chainId": told["chainId"],
        "level": 2,
        "previousTool": "first",
    }


def test_a_step_is_taken_if_the_user_agrees(client: Pipe) -> None:
    asked = len(client.params("elicitation/create"))
    assert texts(client.call("first_destroys"))[:2] == ["One.", "All is gone."]
    question = client.params("elicitation/create")[asked]["message"]
    assert "destroy" in question
    assert '{"what": "all"}' in question
    client.answers["elicitation/create"] = {"action": "decline"}
    declined = client.call("first_destroys")
    client.answers = dict(ANSWERS)
    assert noted(client).count("destroy") == 1
    assert "That call was not made" in texts(declined)[1]
    assert followed(declined)["outcome"] == "declined"
    assert [one["fate"] for one in followed(declined)["followUps"]] == ["not_made"]


def test_a_step_that_brings_no_result_is_not_known_to_have_failed(client: Pipe) -> None:
    failed = client.call("first_fails_later")
    assert "whether it took effect is not known" in texts(failed)[1]
    assert followed(failed)["outcome"] == "failed"
    assert [one["fate"] for one in followed(failed)["followUps"]] == ["unknown"]


def test_a_question_of_a_later_step_reaches_the_user(client: Pipe) -> None:
    before, asked = len(noted(client)), len(client.params("elicitation/create"))
    result = client.call("first_asks")
    assert json.loads(texts(result)[1])["content"] == {"colour": "red"}
    # No step was made twice on the way.
    assert noted(client)[before:] == ["first_asks", "form answered"]
    assert len(client.params("elicitation/create")) == asked + 1


def test_calls_at_the_same_time_are_independent(client: Pipe) -> None:
    calls = [client.begin("tools/call", {"name": "first"}, progressToken="same") for _ in range(5)]
    results = [client.reply(call) for call in calls]
    assert all(texts(result)[:2] == ["One.", "Two."] for result in results)
    assert len({followed(result)["chainId"] for result in results}) == 5
    before = len(client.heard)
    works = [client.begin("tools/call", {"name": "work"}, progressToken=n) for n in (7, 8, 8)]
    for work in works:
        client.reply(work)
    told = [one["params"] for one in client.heard[before:] if "progress" in one["method"]]
    assert [one["progress"] for one in told if one["progressToken"] == 7] == [1, 2, 3]
    assert sorted(one["progress"] for one in told if one["progressToken"] == 8) == [
        1,
        1,
        2,
        2,
        3,
        3,
    ]


def test_the_progress_of_all_steps_is_the_calls(client: Pipe) -> None:
    before = len(client.heard)
    assert texts(client.call("work_on", progressToken="chain"))[:2] == ["Worked."] * 2
    told = [one["params"] for one in client.heard[before:] if "progress" in one["method"]]
    assert [one["progress"] for one in told] == [1, 2, 3, 4, 5, 6]
    assert [one["total"] for one in told] == [3, 3, 3, 6, 6, 6]
    assert {one["progressToken"] for one in told} == {"chain"}


@pytest.mark.parametrize("client", [OLD], indirect=True)
def test_an_answer_that_is_none_is_not_waited_for(client: Pipe) -> None:
    answers: dict[str, Any] = {"elicitation/create": "yes"}
    client.answers = answers
    with pytest.raises(Refused) as refused:
        client.call("form")
    client.answers = dict(ANSWERS)
    assert "was none" in refused.value.error["message"]
    client.answers["elicitation/create"] = {"action": "accept", "content": {"colour": "\ud800"}}
    with pytest.raises(Refused) as refused:
        client.call("form")
    client.answers = dict(ANSWERS)
    assert "surrogate" in refused.value.error["message"]


def test_a_line_that_is_no_message_is_refused_alone(client: Pipe) -> None:
    pid = client.call("who")["structuredContent"]["pid"]
    ping = '{"jsonrpc": "2.0", "id": %s, "method": "ping"}'
    listing = '{"jsonrpc": "2.0", "id": "a", "method": "tools/list", "params": %s}'
    for line, code, number in (
        ("{", -32700, None),
        (f"[{ping % 1}]", -32600, None),
        *((ping % wrong, -32600, None) for wrong in ("1.5", "null", "true")),
        ('{"jsonrpc": "2.0", "id": "a", "method": 5}', -32600, "a"),
        (listing % 5, -32600, "a"),
        (listing % r'{"x": "\ud800"}', -32600, "a"),
        (listing % f'{{"x": {"[" * 300}{"]" * 300}}}', -32600, "a"),
        (listing % '{"x": 1e400}', -32602, "a"),
        (listing % '{"_meta": 7}', -32602, "a"),
    ):
        error = client.refusal_of(line, number)
        assert error["code"] == code, line
        assert "\n" not in error["message"]
    assert client.call("who")["structuredContent"]["pid"] == pid


@pytest.mark.parametrize("client", [NEW], indirect=True)
def test_a_state_is_good_for_one_answer_to_one_call(client: Pipe) -> None:
    asks: JSON = {"name": "first_asks", "arguments": {}}
    interim = client.ask("tools/call", asks)
    assert interim["resultType"] == "input_required"
    assert "first_asks" not in interim["requestState"]
    answers = client.answering(interim)
    state = answers["requestState"]
    last = "A" if state[-1] != "A" else "B"
    for wrong in (
        # As it would be if the proxy had been started anew meanwhile.
        {**asks, **answers, "requestState": state[:-1] + last},
        {**asks, **answers, "arguments": {"text": "other"}},
        {**answers, "name": "form", "arguments": {}},
    ):
        with pytest.raises(Refused) as refused:
            client.ask("tools/call", wrong)
        assert refused.value.error["code"] == -32602
        assert "Call again to be asked anew" in refused.value.error["message"]
    assert len(texts(client.ask("tools/call", {**asks, **answers}))) == 3
    done = len(noted(client))
    with pytest.raises(Refused) as refused:
        client.ask("tools/call", {**asks, **answers})
    assert "Call again to be asked anew" in refused.value.error["message"]
    # A state of an earlier round is as good as one of an earlier call.
    asks = {"name": "form_twice"}
    interim = client.ask("tools/call", asks)
    second = client.ask("tools/call", {**asks, **client.answering(interim)})
    with pytest.raises(Refused):
        client.ask("tools/call", {**asks, **client.answering(interim)})
    assert texts(client.ask("tools/call", {**asks, **client.answering(second)}))
    # An answer that is missing is asked for again.
    interim = client.ask("tools/call", {"name": "form"})
    again = client.ask(
        "tools/call",
        {"name": "form", "requestState": interim["requestState"], "inputResponses": {}},
    )
    assert again["inputRequests"] == interim["inputRequests"]
    client.ask("tools/call", {"name": "form", **client.answering(again)})
    assert noted(client)[done:] == ["form answered"]


def test_a_call_waits_for_its_user_so_long_and_not_longer(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    options = ("--wait-for-user", "0.001", "--call-timeout", "5", "--text-only")
    command = [*PROXY, *options, "--", *STRANGE, "--only", OLD]
    views = {"extensions": {EXTENSION_ID: {"mimeTypes": [APP_MIME_TYPE]}, "com.example/else": {}}}
    with pipe(command, NEW, {**CAPABILITIES, **views}, STRANGE_NOTES=str(notes)) as client:
        client.notes = notes
        interim = client.ask("tools/call", {"name": "form"})
        with pytest.raises(Refused) as refused:
            client.ask("tools/call", {"name": "form", **client.answering(interim)})
        assert "asked anew" in refused.value.error["message"]
        soon(lambda: "form given up" in noted(client))
        with pytest.raises(Refused) as refused:
            client.call("slow", {"text": "s"})
        assert "did not answer within 5 s" in refused.value.error["message"]
        soon(lambda: "cancelled s" in noted(client))
        # Without rules, nothing is followed that may destroy something.
        assert followed(client.call("first_destroys"))["outcome"] == "declined"
        # And what only a host would see that looks at nothing else is words here.
        assert not any("outputSchema" in tool for tool in client.ask("tools/list")["tools"])
        chain = client.call("first")
        assert "structuredContent" not in chain
        # The server is told of no host that draws a view from it; the rest is as it was declared.
        (who,) = texts(client.call("who"))
        declared = json.loads(who)["capabilities"]["extensions"]
        assert declared.keys() == {CHAINING, "com.example/else"}
        assert texts(chain)[:2] == ["One.", "Two."]
        assert texts(client.call("strict")) == ['{"of": "strict"}']
        # Whoever cannot be asked is not asked.
        client.capabilities = {}
        with pytest.raises(Refused) as refused:
            client.call("form")
        assert refused.value.error["message"] == "Elicitation not supported"
    assert "form answered" not in notes.read_text()
