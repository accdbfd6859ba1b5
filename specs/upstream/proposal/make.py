"""Make the proposal (SEP) from `tool-chaining.md` and `rationale.md`, in the protocol's template.

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

PLACES = {
    "Abstract": ["Abstract"],
    "Motivation": ["Motivation"],
    "Specification": ["Conventions", "Specification"],
    "Rationale": [],  # Whatever has no other place.
    "Backward Compatibility": ["Compatibility, and deviations from the core"],
    "Security Implications": ["Threats"],
    "Reference Implementation": ["Reference Implementation"],
    "Open Questions": ["An open question: the key and the identifier", "Who has agreed"],
}
"""The sections of the template, and which of ours each one takes."""

WITHOUT_HEADING = {
    "Abstract",
    "Motivation",
    "Specification",
    "Compatibility, and deviations from the core",
    "Threats",
    "Reference Implementation",
}
"""Ours that are a section of the template by themselves."""


def sections(page: str) -> tuple[str, dict[str, str]]:
    """Return what stands before the first section of a page, and the text of each section."""
    text = (SPECS / page).read_text(encoding="utf-8")
    head, *parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    return head, dict(zip(parts[::2], map(str.strip, parts[1::2]), strict=True))


def shown(heading: str, text: str) -> str:
    """Return one of our sections as part of a section of the template."""
    if heading in WITHOUT_HEADING:
        return text
    return f"### {heading}\n\n" + re.sub(r"^###", "####", text, flags=re.MULTILINE)


def linked(text: str) -> str:
    """Return the text with links that lead somewhere from another repository too."""
    about = tomllib.loads((SPECS.parent / "pyproject.toml").read_text(encoding="utf-8"))
    repository = about["project"]["urls"]["Repository"]

    def target(found: re.Match[str]) -> str:
        page, _, anchor = found[1].partition("#")
        own = {"tool-chaining.md": "#specification", "rationale.md": "#rationale"}
        if page in own:
            return f"](#{anchor})" if anchor else f"]({own[page]})"
        return f"]({repository}/blob/main/specs/{found[1]})"

    text = text.replace("This repository", "Our repository").replace("this repo", "our repo")
    return re.sub(r"\]\((?!https?:|#)([^)\s]+)\)", target, text)


def table() -> str:
    """Return what was run, as a table."""
    rows = yaml.safe_load((HERE / "implementations.yaml").read_text(encoding="utf-8"))
    lines = ["| What | Verdict | Command | Run on |", "| --- | --- | --- | --- |"]
    for row in rows:
        lines.append(f"| {row['what']} | {row['verdict']} | `{row['command']}` | {row['ran']} |")
    return "\n".join(lines)


def proposal(author: str, created: str) -> str:
    """Return the whole text. Raises KeyError if a section that it takes was renamed."""
    head, ours = sections("tool-chaining.md")
    preface, reasons = sections("rationale.md")
    ours |= reasons
    taken = {heading for headings in PLACES.values() for heading in headings}
    places = PLACES | {"Rationale": [heading for heading in ours if heading not in taken]}
    title, identifier = re.findall(r"^(?:# |Extension )(.+?|`.+?`)(?: \(|$)", head, re.MULTILINE)
    parts = [
        f"# SEP-0000: {title}",
        "- **Status**: Draft\n- **Type**: Extensions Track\n"
        f"- **Created**: {created}\n- **Author(s)**: {author}\n- **Sponsor**: None\n"
        f"- **Extension Identifier**: {identifier} (provisional)\n- **PR**: {SOURCE}/pull/0000",
    ]
    for section, headings in places.items():
        parts.append(f"## {section}")
        parts += [shown(heading, ours[heading]) for heading in headings]
        if section == "Reference Implementation":
            parts += [WHAT_WAS_RUN, table()]
    parts += ["## Acknowledgments", "The origin is " + preface.split("Its origin is ")[1].strip()]
    return linked("\n\n".join(parts) + "\n")


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
