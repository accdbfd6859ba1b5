"""Public servers of npm and PyPI, chained for a host by the rules of `specs/examples/rules`.

None of them knows of `nextTool`. The host is a small agent on Vercel's AI SDK with a model from a
script, which makes the first calls and is told of the whole chain. A copy of what the server is
sent shows what was called. The servers are installed with the hosts and frameworks of
`test_hosts.py`.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tool_chaining_proxy.draft import drafted

from ..conformance.node_project import HOSTS, missing, node
from ..kit.model import Reply, Script, ScriptedModel, scripted_model
from ..kit.pages import PAGES, ROOT
from .test_hosts import NO_FRAMEWORKS, PYTHON, execute, in_node

RULES = ROOT / "specs" / "examples" / "rules"

Calls = list[tuple[str, dict[str, Any]]]


@dataclass(frozen=True)
class Public:
    """A server, and one run of it. `FOLDER` and `COMMIT` in arguments are what they say."""

    rules: str
    start: str
    first: Calls
    """What the model asks for."""
    then: Calls
    """What the rules add to its last call."""
    told: str
    """What only the last result says."""


def npm(package: str, script: str = "dist/index.js") -> str:
    return f"{node()} {HOSTS / 'node_modules' / package / script}"


def pypi(command: str) -> str:
    return str(Path(PYTHON or "python").with_name(command))


MEMORY, TASKS = "@modelcontextprotocol/server-memory", "@kazuph/mcp-taskmanager"
GIT = "@cyanheads/git-mcp-server"
ANN = {"name": "Ann", "entityType": "person", "observations": []}
KNOWS = {"from": "default_user", "to": "Ann", "relationType": "knows"}
PACK = {"title": "Pack", "description": "The books first."}
BOOK = {"path": "FOLDER/sales.xlsx"}
CSV = {**BOOK, "sheet": "Sales", "csv_path": "FOLDER/sales.csv"}
CHART = {"chart_type": "line", "sheet": "Chart", "source": "'Sales'!A1:B3"}
SERVERS = [
    (
        missing(MEMORY, HOSTS),
        Public(
            "memory",
            f"MEMORY_FILE_PATH=FOLDER/memory.jsonl {npm(MEMORY)}",
            first=[("create_entities", {"entities": [ANN]})],
            then=[("create_relations", {"relations": [KNOWS]})],
            told="default_user",
        ),
    ),
    (
        missing(TASKS, HOSTS),
        Public(
            "taskmanager",
            f"TASK_MANAGER_FILE_PATH=FOLDER/tasks.json {npm(TASKS)}",
            first=[("request_planning", {"originalRequest": "Move.", "tasks": [PACK]})],
            then=[("get_next_task", {"requestId": "req-1"})],
            told="Next task is ready.",
        ),
    ),
    (
        missing(GIT, HOSTS),
        Public(
            "git",
            f"GIT_SIGN_COMMITS=false {npm(GIT)}",
            first=[("git_commit", {"path": "FOLDER", "message": "A new file"})],
            then=[("git_show", {"path": "FOLDER", "object": "COMMIT", "stat": True})],
            told="1 file changed, 3 insertions(+)",
        ),
    ),
    (
        NO_FRAMEWORKS,
        Public(
            "duckdb",
            f"{pypi('mcp-server-motherduck')} --db-path :memory: --read-write",
            first=[("execute_query", {"sql": "SELECT * FROM nowhere"})],
            then=[("list_tables", {})],
            told="tableCount",
        ),
    ),
    (
        NO_FRAMEWORKS,
        Public(
            "excel",
            f"{pypi('excel-mcp-server')} stdio",
            first=[("create_workbook", BOOK), ("import_csv", CSV)],
            then=[
                ("set_table", {**BOOK, "sheet": "Sales", "range": "A1:B3"}),
                ("create_chart", {**BOOK, **CHART}),
            ],
            told='{"sheet":"Chart"}',
        ),
    ),
]


def files(folder: Path) -> None:
    """Write what the servers are to work on: a CSV file, and a file that is not committed."""
    (folder / "sales.csv").write_text("month,sales\nJan,3\nFeb,5\n")
    (folder / ".gitconfig").write_text("[user]\nname = Ann\nemail = ann@bank.example\n")
    execute(folder, "git", "init", "--quiet")
    execute(folder, "git", "add", "sales.csv")


def asking_for(calls: Calls) -> Script:
    return [*(Reply(calls=[call]) for call in calls), Reply("Done.")]


def here(written: Any, folder: Path) -> Any:
    return json.loads(json.dumps(written).replace("FOLDER", str(folder)))


def made(public: Public, folder: Path, home: Path, model: ScriptedModel, *options: str) -> Calls:
    """Run the host with the proxy once, and return the calls that the server was sent."""
    if not home.exists():
        home.mkdir()
        (home / ".gitconfig").symlink_to(folder / ".gitconfig")
    sent, server = home / "sent", home / "server"
    server.write_text(f"#!/bin/sh\ntee -a {sent} | {here(public.start, folder)}\n")
    server.chmod(0o700)
    in_node("vercel", home, model.url, f"tool-chaining-proxy {' '.join(options)} -- {server}")
    messages = [json.loads(line) for line in sent.read_text(encoding="utf-8").splitlines()]
    calls = [one["params"] for one in messages if one.get("method") == "tools/call"]
    return [(one["name"], one.get("arguments", {})) for one in calls]


@pytest.mark.nightly
@pytest.mark.parametrize(
    "public",
    [
        pytest.param(public, id=public.rules, marks=pytest.mark.needs_program(lacking))
        for lacking, public in SERVERS
    ],
)
def test_rules_chain_the_tools_of_a_public_server(public: Public, tmp_path: Path) -> None:
    files(tmp_path)
    first, then = here(public.first, tmp_path), here(public.then, tmp_path)
    expected = [[*call] for call in (*first, *then)]
    with scripted_model(asking_for(first)) as model:
        rules = f"--rules {RULES / public.rules}.toml"
        called = json.dumps(made(public, tmp_path, tmp_path, model, rules))
    assert json.loads(re.sub(r"\b[0-9a-f]{40}\b", "COMMIT", called)) == expected
    # The host writes the result as JSON into JSON.
    told = model.told.replace("\\", "")
    for tool, _ in then:
        assert f'the next step "{tool}" by a rule of the user, has already run' in told
    assert public.told in told


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("public", "name", "pattern"),
    [
        pytest.param(public, *of_result, id=public.rules, marks=pytest.mark.needs_program(lacking))
        for lacking, public in SERVERS
        for of_result in {
            "git": [("COMMIT", r"\b[0-9a-f]{40}\b")],
            "taskmanager": [("req-1", r"\breq-\d+\b")],
        }.get(public.rules, ())
    ],
)
def test_a_draft_makes_the_calls_that_were_recorded(
    public: Public, name: str, pattern: str, tmp_path: Path
) -> None:
    """`name` in the second call stands for what the model finds in the first result."""
    files(tmp_path)
    [first], [(tool, arguments)] = here(public.first, tmp_path), here(public.then, tmp_path)

    def agent(request: dict[str, Any]) -> Reply:
        results = [one["content"] for one in request["messages"] if one["role"] == "tool"]
        if len(results) != 1:
            return Reply("Done.") if results else Reply(calls=[first])
        found = re.search(pattern, str(results[0]))
        assert found
        return Reply(calls=[(tool, json.loads(json.dumps(arguments).replace(name, found[0])))])

    def run(number: int, script: Script, *options: str) -> Calls:
        (tmp_path / "sales.csv").write_text(f"{number}\n")
        execute(tmp_path, "git", "add", "sales.csv")
        with scripted_model(script) as model:
            return made(public, tmp_path, tmp_path / str(number), model, *options)

    recording, rules = tmp_path / "calls.jsonl", tmp_path / "rules.toml"
    recorded = [run(number, agent, f"--record {recording}") for number in range(3)]
    draft = drafted(recording)
    # A person agrees to what the server does not mark as read-only.
    rules.write_text(re.sub(r"^# (?=\[|\w+ =)", "", draft, flags=re.MULTILINE), "utf-8")
    by_rule = run(3, [Reply(calls=[first]), Reply("Done.")], f"--rules {rules} --consent all")
    calls = [re.sub(pattern, name, json.dumps(each)) for each in (*recorded, by_rule)]
    assert {*calls} == {json.dumps([first, (tool, arguments)])}


@pytest.mark.quick
def test_the_page_lists_the_installed_versions_of_the_public_servers() -> None:
    page = PAGES["specs/proxy/rules.md"].text
    shown = re.findall(r"^\| \[`([^`]+)`\]\(\S+\) (\S+) \|", page, re.MULTILINE)
    packages = json.loads((ROOT / "tests/node/hosts/package.json").read_text("utf-8"))
    pins = (ROOT / ".ci" / "requirements-frameworks.txt").read_text("utf-8")
    installed = packages["dependencies"] | dict(re.findall(r"^(\S+)==(\S+)", pins, re.MULTILINE))
    assert {name: installed[name] for name, _ in shown} == dict(shown)
    files = {path.stem for path in RULES.glob("*.toml")}
    assert files == {public.rules for _, public in SERVERS}
    assert len(shown) == len(SERVERS)
