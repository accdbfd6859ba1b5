"""What goes through the proxy comes out as it went in, in every combination of revisions."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from .pipe import (
    ANSWERS,
    CHAINING,
    JSON,
    META,
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

COMBINATIONS = [
    (OLD, NEW),
    (NEW, OLD),
    pytest.param((OLD, OLD), marks=pytest.mark.nightly),
    pytest.param((NEW, NEW), marks=pytest.mark.nightly),
]


@pytest.fixture(scope="module")
def direct() -> Iterator[dict[str, Pipe]]:
    """The strange server itself, spoken to on either revision."""
    with ExitStack() as stack:
        yield {one: stack.enter_context(pipe(STRANGE, one)) for one in (OLD, NEW)}


@pytest.fixture(scope="module", params=COMBINATIONS, ids=" to ".join)
def through(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pipe]:
    """The proxy in front of the strange server, which speaks one revision alone."""
    client, server = request.param
    notes = tmp_path_factory.mktemp("strange") / "notes"
    command = [*PROXY, "--", *STRANGE, "--only", server]
    with pipe(command, client, STRANGE_NOTES=str(notes)) as one:
        one.notes, one.behind = notes, server
        yield one


@pytest.fixture
def itself(direct: dict[str, Pipe], through: Pipe) -> Pipe:
    """The same server without a proxy, on the same revision as the client of the proxy."""
    return direct[through.revision]


def without(message: JSON, *members: str) -> JSON:
    return {k: v for k, v in message.items() if k not in members}


def test_the_greeting_is_the_servers_without_the_extension(through: Pipe, itself: Pipe) -> None:
    mine, theirs = through.greeting, dict(itself.greeting)
    assert CHAINING in theirs["capabilities"]["extensions"]
    assert CHAINING not in json.dumps(mine)
    extensions = without(theirs["capabilities"]["extensions"], CHAINING)
    theirs["capabilities"] = {**theirs["capabilities"], "extensions": extensions}
    if through.behind != through.revision:
        theirs.pop("x-initialize", None)
    assert mine == theirs


REQUESTS: list[tuple[str, JSON]] = [
    ("tools/list", {}),
    ("tools/list", {"cursor": "NQ=="}),
    ("resources/list", {}),
    ("resources/list", {"cursor": "NQ=="}),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": "strange://1"}),
    ("prompts/list", {}),
    ("prompts/get", {"name": "greet", "arguments": {"whom": "all"}}),
    (
        "completion/complete",
        {
            "ref": {"type": "ref/prompt", "name": "greet"},
            "argument": {"name": "whom", "value": "a"},
        },
    ),
    ("weather/read", {"where": {"deep": [1.5, None]}}),
    ("tools/call", {"name": "fail"}),
    ("tools/call", {"name": "strict"}),
]
REFUSED: list[tuple[str, JSON]] = [
    ("tools/call", {"name": "error"}),
    ("tools/call", {"name": "unheard of"}),
    ("resources/read", {"uri": "strange://none"}),
    ("unheard/of", {}),
]


def test_answers_come_as_the_server_gave_them(through: Pipe, itself: Pipe) -> None:
    for method, params in REQUESTS:
        assert through.ask(method, params) == itself.ask(method, params), method
    for method, params in REFUSED:
        with pytest.raises(Refused) as mine:
            through.ask(method, params)
        with pytest.raises(Refused) as theirs:
            itself.ask(method, params)
        assert mine.value.error == theirs.value.error, method


def test_a_call_reaches_the_server_as_it_was_made(through: Pipe, itself: Pipe) -> None:
    sent = {"name": "echo", "arguments": {"text": "é", "more": [1.5, 2**60, None, {"": {}}]}}
    meta = {"com.client/x": {"y": [None]}, "traceparent": "00-" + "1" * 32 + "-" + "2" * 16 + "-01"}
    mine, theirs = (one.ask("tools/call", sent, **meta) for one in (through, itself))
    assert without(mine, "structuredContent") == without(theirs, "structuredContent")
    got = mine["structuredContent"]
    assert got["arguments"] == sent["arguments"]
    own = {k: v for k, v in got["meta"].items() if k.startswith(META)}
    assert without(got["meta"], *own, CHAINING) == meta
    provenance = got["meta"][CHAINING]
    assert provenance["level"] == 1
    assert len(provenance["chainId"]) == 36
    if through.behind == NEW:
        told = own[f"{META}clientCapabilities"]
        assert own[f"{META}clientInfo"]["x-client"] is True
    else:
        assert own == {}
        told = json.loads(through.call("who")["content"][0]["text"])["capabilities"]
    assert told["extensions"] == {"com.strange/weather": {"unit": "C"}, CHAINING: {"version": 1}}
    assert told["elicitation"] == {"form": {}, "url": {}}
    # Only where both ends have a word for it can a client tell of its roots.
    assert told["roots"] == ({"listChanged": True} if through.behind == through.revision else {})


QUESTIONS: dict[str, tuple[str, ...]] = {
    "form": ("elicitation/create",),
    "form_twice": ("elicitation/create",) * 3,
    "url": ("elicitation/create",),
    "sample": ("sampling/createMessage",),
    "roots": ("roots/list",),
}


def test_questions_reach_the_user_and_answers_the_server(through: Pipe, itself: Pipe) -> None:
    for tool, questions in QUESTIONS.items():
        told = len(through.heard), len(itself.heard)
        assert through.call(tool) == itself.call(tool), tool
        mine, theirs = through.heard[told[0] :], itself.heard[told[1] :]
        asked = [one for one in mine if one["method"] in ANSWERS]
        assert tuple(one["method"] for one in asked) == questions
        assert [_comparable(one) for one in asked] == [
            _comparable(one) for one in theirs if one["method"] in ANSWERS
        ]
    both_old = through.behind == through.revision == OLD
    assert ("notifications/elicitation/complete" in through.methods) is both_old
    for method, params in (
        ("prompts/get", {"name": "greet", "arguments": {"whom": "asks"}}),
        ("resources/read", {"uri": "strange://asks"}),
    ):
        assert through.through(method, params) == itself.through(method, params)


@pytest.mark.parametrize("through", [COMBINATIONS[1], COMBINATIONS[3]], indirect=True, ids=str)
def test_a_question_comes_with_the_call_that_it_belongs_to(through: Pipe) -> None:
    """Though another one began later: a server of 2025-11-25 does not say which it is."""
    through.notes.touch()
    before = through.call("who")["structuredContent"]["pid"]
    asks = through.begin("tools/call", {"name": "form_beside"})
    slow = through.begin("tools/call", {"name": "slow", "arguments": {"text": "beside"}})
    interim = through.reply(asks)
    (question,) = interim["inputRequests"].values()
    assert question["params"]["message"] == "Which colour beside?"
    answers = through.answering(interim)
    result = through.ask("tools/call", {"name": "form_beside", **answers})
    assert json.loads(result["content"][0]["text"]) == ANSWERS["elicitation/create"]
    through.tell("notifications/cancelled", {"requestId": slow})
    soon(lambda: "cancelled beside" in noted(through))
    # One after the other, all calls are the first connection's.
    assert through.call("who")["structuredContent"]["pid"] == before


def _comparable(question: JSON) -> JSON:
    params = without(question.get("params") or {}, "elicitationId", "_meta")
    return {"method": question["method"], "params": params}


def test_progress_and_log_of_a_call(through: Pipe) -> None:
    def heard_of_work(**meta: Any) -> list[tuple[str, Any]]:
        before = len(through.heard)
        through.call("work", **meta)
        news = through.heard[before:]
        return [(one["method"].rpartition("/")[2], one["params"]) for one in news]

    heard = heard_of_work(progressToken="tick", **_level(through, "info"))
    progress = [params for method, params in heard if method == "progress"]
    assert [one["progress"] for one in progress] == [1, 2, 3]
    assert all(one["progressToken"] == "tick" and one["x-progress"] for one in progress)
    levels = [params["level"] for method, params in heard if method == "message"]
    assert levels == ["info", "error"]
    levels = [params["level"] for method, params in heard_of_work(**_level(through, "error"))]
    assert levels == ["error"]


def _level(through: Pipe, level: str) -> JSON:
    if through.revision == NEW:
        return {f"{META}logLevel": level}
    through.ask("logging/setLevel", {"level": level})
    return {}


def test_changes_are_told(through: Pipe) -> None:
    everything = {
        "toolsListChanged": True,
        "promptsListChanged": True,
        "resourcesListChanged": True,
    }
    if through.revision == NEW:
        wanted = {**everything, "resourceSubscriptions": ["strange://1"]}
        stream = through.begin("subscriptions/listen", {"notifications": wanted})
        through.until(lambda: "notifications/subscriptions/acknowledged" in through.methods)
        (acknowledged,) = through.params("notifications/subscriptions/acknowledged")
        assert acknowledged["notifications"] == wanted
    else:
        through.ask("resources/subscribe", {"uri": "strange://1"})
    before = len(through.heard)
    through.call("change")
    expected = {
        "notifications/tools/list_changed",
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
        "notifications/resources/updated",
        "notifications/weather/changed",
    }
    through.until(lambda: {one["method"] for one in through.heard[before:]} >= expected)
    news = through.heard[before:]
    assert sorted(one["method"] for one in news) == sorted(expected)
    for one in news:
        if "weather" not in one["method"]:
            own = one["params"].get("_meta", {}).get(f"{META}subscriptionId")
            assert own == (stream if through.revision == NEW else None), one
    if through.revision == NEW:
        through.tell("notifications/cancelled", {"requestId": stream})
    else:
        through.ask("resources/unsubscribe", {"uri": "strange://1"})
    before = len(through.heard)
    through.call("change")
    through.call("change")
    news = [one["method"] for one in through.heard[before:]]
    assert "notifications/resources/updated" not in news
    assert ("notifications/tools/list_changed" in news) is (through.revision == OLD)


def test_what_the_client_tells_reaches_the_server(through: Pipe) -> None:
    through.tell("notifications/roots/list_changed")
    through.tell("notifications/weather/wish", {"kelvin": 300, "_meta": {"x": 1}})
    soon(lambda: any("weather/wish" in line for line in noted(through)))
    (wish,) = [line for line in noted(through) if "weather/wish" in line]
    assert json.loads(wish.partition(" ")[2]) == {"kelvin": 300, "_meta": {"x": 1}}
    roots = any("roots/list_changed" in line for line in noted(through))
    assert roots is (through.behind == through.revision == OLD)


def test_a_call_that_is_cancelled_is_cancelled_at_the_server(through: Pipe) -> None:
    begun = through.begin("tools/call", {"name": "slow", "arguments": {"text": "a"}})
    other = through.begin("tools/call", {"name": "slow", "arguments": {"text": "b"}})
    soon(lambda: {"slow a", "slow b"} <= set(noted(through)))
    through.tell("notifications/cancelled", {"requestId": begun})
    soon(lambda: "cancelled a" in noted(through))
    assert "cancelled b" not in noted(through)
    assert through.call("fail")["isError"] is True
    through.tell("notifications/cancelled", {"requestId": other})
    soon(lambda: "cancelled b" in noted(through))


@pytest.mark.parametrize("through", [COMBINATIONS[0], COMBINATIONS[2]], indirect=True, ids=str)
def test_a_server_that_dies_is_one_error_and_is_started_again(through: Pipe) -> None:
    through.ask("resources/subscribe", {"uri": "strange://1"})
    before = through.call("who")["structuredContent"]["pid"]
    with pytest.raises(Refused) as died:
        through.call("die")
    assert "ended while this request was under way" in died.value.error["message"]
    assert "\n" not in died.value.error["message"]
    assert through.call("who")["structuredContent"]["pid"] != before
    # What was subscribed to before holds for the new process too.
    seen = len(through.params("notifications/resources/updated"))
    through.call("change")
    through.until(lambda: len(through.params("notifications/resources/updated")) > seen)
