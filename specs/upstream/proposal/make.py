"""Make the proposal (SEP) that charters the extension, from its template and the specification.

    python make.py 0000-tool-chaining.md [--author "Name <email> (@github)"] [--created 2026-11-23]
    python make.py 0000-tool-chaining.md --check

`--check` also does what the receiver's repository does with a proposal: it formats the file, makes
its page, and reads the page as MDX. It needs git, Node, npm and the network.
"""

import argparse
import re
import subprocess
import tempfile
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import yaml

HERE = Path(__file__).parent
SPECS = HERE.parents[1]
SOURCE = "https://github.com/modelcontextprotocol/modelcontextprotocol"
WHAT_WAS_RUN = (
    "What was run, each command with exit code 0. The revisions are 2025-11-25 and 2026-07-28. The "
    "last three servers are by others; their owners were not asked."
)


def section(page: str, heading: str) -> str:
    """Return the text of a section of a page. Raises IndexError if there is no such section."""
    text = (SPECS / page).read_text(encoding="utf-8")
    return re.split("^## ", text.split(f"\n## {heading}\n")[1], flags=re.MULTILINE)[0].strip()


def table() -> str:
    """Return what was run, as a table."""
    rows = yaml.safe_load((HERE / "implementations.yaml").read_text(encoding="utf-8"))
    lines = ["| What | Verdict | Command | Run on |", "| --- | --- | --- | --- |"]
    for row in rows:
        lines.append(f"| {row['what']} | {row['verdict']} | `{row['command']}` | {row['ran']} |")
    return "\n".join(lines)


def proposal(author: str, created: str) -> str:
    """Return the whole text. Raises IndexError if a section that it takes was renamed."""
    about = tomllib.loads((SPECS.parent / "pyproject.toml").read_text(encoding="utf-8"))
    text = (SPECS / "tool-chaining.md").read_text(encoding="utf-8")
    origin = (SPECS / "rationale.md").read_text(encoding="utf-8").split("Its origin is ")[1]
    [identifier] = re.findall(r"^Extension (`.+?`)", text, re.MULTILINE)
    return (
        (HERE / "charter.md.template")
        .read_text(encoding="utf-8")
        .format(
            title=text.splitlines()[0].removeprefix("# "),
            author=author,
            created=created,
            source=SOURCE,
            identifier=identifier,
            repository=about["project"]["urls"]["Repository"],
            sentences=len(re.findall(r"^- \*\*TC-", text, re.MULTILINE)),
            # The example is in the text itself.
            abstract=section("tool-chaining.md", "Abstract").split("\n\n```")[0],
            motivation=section("rationale.md", "Motivation").split("\n\n")[0],
            implementations=f"{WHAT_WAS_RUN}\n\n{table()}",
            origin=origin.split("\n")[0],
        )
    )


def check(made: Path, source: str, folder: Path) -> None:
    """Do what the receiver's repository does with the proposal, and leave the file formatted.

    Raises CalledProcessError if that repository does not take it.
    """

    def run(*command: str) -> None:
        subprocess.run(command, cwd=folder, check=True)

    run("git", "clone", "--quiet", "--depth=1", source, ".")
    run("npm", "ci", "--ignore-scripts")
    name = "9999-tool-chaining"  # The script there leaves out what has the number 0000.
    text = made.read_text(encoding="utf-8").replace("SEP-0000", "SEP-9999")
    copy = folder / "seps" / f"{name}.md"
    copy.write_text(text, encoding="utf-8")
    run("npx", "prettier", "--write", f"seps/{name}.md")
    formatted = copy.read_text(encoding="utf-8").replace("SEP-9999", "SEP-0000")
    made.write_text(formatted, encoding="utf-8")
    run("npm", "run", "generate:seps")
    run("npm", "run", "check:seps")
    run("npm", "run", "check:docs:js-comments")
    run("node", "--input-type=module", "--eval", READ_AS_MDX, f"docs/seps/{name}.mdx")
    print("The repository of the protocol formats the proposal and makes its page.")


READ_AS_MDX = """
import { readFileSync } from "fs";
import remarkMdx from "remark-mdx";
import remarkParse from "remark-parse";
import { unified } from "unified";
unified().use(remarkParse).use(remarkMdx).parse(readFileSync(process.argv[1], "utf8"));
"""

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Make the proposal from the specification.")
    parser.add_argument("file", type=Path, help="the file to write")
    parser.add_argument("--author", default="To be named", help='"Name <email> (@github)"')
    parser.add_argument("--created", default=str(datetime.now(UTC).date()), help="YYYY-MM-DD")
    parser.add_argument("--check", action="store_true", help="try it in the receiver's repository")
    parser.add_argument("--source", default=SOURCE, help="that repository, for git")
    given = parser.parse_args()
    text = proposal(given.author, given.created)
    given.file.parent.mkdir(parents=True, exist_ok=True)
    given.file.write_text(text, encoding="utf-8")
    if given.check:
        with tempfile.TemporaryDirectory() as made:
            check(given.file, given.source, Path(made))
