"""A server with sign-in by tool and its caller in `_meta` can show all that it does."""

from pathlib import Path
from typing import Any

import pytest

from banking_server.conformance.target.era import Era

from .small_server import SmallServer
from .strangers_server import Endless, ManyTools, OpenChain, OpenDoor, Parcels
from .support import HERE, Ended, serving, suite

WORD = 'say "friend" \\ enter'
AUTHORIZED = "tool-chaining-server-chained-call-authorized"
PARCELS = HERE / "parcels.yaml"


def judged(server: SmallServer, scenario: Path = PARCELS, *options: str, **more: str) -> Ended:
    environment = {"PARCELS_WORD": WORD, **more}
    with serving(server) as url:
        return suite(
            *("server", "--url", url, "--scenario", scenario, "--json", *options),
            environment=environment,
        )


def status_of(run: Ended, check_id: str) -> set[str]:
    return {
        "UNTESTABLE" if check.get("untestable") else check["status"]
        for check in run.report["checks"]
        if check["id"] == f"tool-chaining-server-{check_id.removeprefix('tool-chaining-server-')}"
    }


def test_it_is_conformant_and_shows_its_word_nowhere() -> None:
    run = judged(Parcels())
    assert (run.code, run.report["verdict"]) == (0, "conformant"), run.output
    assert run.report["spec_versions"] == list(Era)
    for check_id in ("chained-call-authorized", "no-cycle", "names-listed-tool"):
        assert status_of(run, check_id) == {"SUCCESS"}
    assert status_of(run, "no-secret-in-arguments") == {"SUCCESS"}
    assert "friend" not in run.output
    assert "caller-of-ann" not in run.output


@pytest.mark.parametrize("kind", [OpenDoor, OpenChain])
def test_the_confused_deputy_is_found(kind: Any) -> None:
    run = judged(kind())
    assert run.code == 1
    failed = {check["id"] for check in run.report["checks"] if check["status"] == "FAILURE"}
    assert failed == {AUTHORIZED}
    assert status_of(run, AUTHORIZED) == {"FAILURE"}


def test_a_chain_without_end_is_seen_by_who_signed_in() -> None:
    run = judged(Endless())
    assert status_of(run, "chain-within-default-limit") == {"WARNING"}


def test_a_follow_up_call_that_fails_is_no_success(tmp_path: Path) -> None:
    """The caller does not stand in `_meta` of every request: the follow-up call is refused."""
    path = tmp_path / "forgets.yaml"
    text = PARCELS.read_text().replace('meta: {parcels.example/caller: "${caller}"}\n', "")
    text = text.replace(
        "    arguments: {item: book}\n",
        '    arguments: {item: book}\n    meta: {parcels.example/caller: "${caller}"}\n',
    )
    path.write_text(text)
    run = judged(Parcels(), path)
    assert run.code == 1  # Its tools are not listed to a caller who is nobody.
    for check_id in ("no-cycle", "chain-within-default-limit", "chained-call-authorized"):
        assert "SUCCESS" not in status_of(run, check_id)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("${parcel}\"}\n    expect: {nextTool: none", "parcel-9\"}\n    expect: {nextTool: none"),
         "not seen to succeed"),
        (("    caller: stranger\n", ""), "expected nextTool none"),
    ],
    ids=["another-call", "the-same-caller"],
)  # fmt: skip
def test_an_error_is_not_taken_for_a_refusal(
    change: tuple[str, str], reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(PARCELS.read_text().replace(*change))
    run = judged(Parcels(), path)
    assert run.code == 4
    assert status_of(run, AUTHORIZED) == {"UNTESTABLE"}
    assert reason in run.report["reason"]


def test_more_tools_than_are_read_are_no_fault() -> None:
    run = judged(ManyTools(), PARCELS, "--spec-version", Era.MODERN)
    assert run.code == 4
    assert status_of(run, "names-listed-tool") == {"UNTESTABLE"}
    (check,) = [check for check in run.report["checks"] if check["id"].endswith("listed-tool")]
    assert "tools/list goes on after 100 pages" in check["seen"]


def test_callers_who_stand_in_headers(tmp_path: Path) -> None:
    """Both callers sign in by a header; who has a wrong one is not let in at all."""
    path = tmp_path / "headers.yaml"
    text = PARCELS.read_text()
    text = text.replace(
        "  stranger: {meta: {parcels.example/caller: caller-of-nobody}}",
        "  stranger: {headers: {x-key: STRANGERS_KEY}}",
    )
    text = text.replace("{nextTool: none, isError: true}", "{nextTool: none}")
    path.write_text(text)
    with serving(Parcels(), required_header=("x-key", "the-right-key")) as url:
        run = suite(
            *("server", "--url", url, "--scenario", path, "--json", "--header", "x-key=OUR_KEY"),
            environment={
                "PARCELS_WORD": WORD,
                "OUR_KEY": "the-right-key",
                "STRANGERS_KEY": "the-wrong-key",
            },
        )
    assert run.code == 0, run.output
    assert status_of(run, AUTHORIZED) == {"SUCCESS"}
    assert "the-wrong-key" not in run.output


def test_a_variable_that_is_not_set_is_named() -> None:
    with serving(Parcels()) as url:
        run = suite("server", "--url", url, "--scenario", PARCELS)
    assert run.code == 2
    assert "the environment variable PARCELS_WORD is not set" in run.errors
