"""The Markdown pages that GitHub shows of this repository, read once by a parser."""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
FOLDERS = (".github", "banking_server", "data", "specs", "tests")

MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])


@dataclass(frozen=True)
class Block:
    """A block of code, with the HTML comment that stands directly above it, if one does."""

    page: str
    line: int
    language: str
    text: str
    comment: str


@dataclass(frozen=True)
class Page:
    """One page, by its path in the repository."""

    name: str

    @property
    def path(self) -> Path:
        return ROOT / self.name

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tokens(self) -> list[Token]:
        return MARKDOWN.parse(self.text)

    @cached_property
    def inline(self) -> list[Token]:
        """What is within its paragraphs, headings and cells."""
        return [part for token in self.tokens for part in token.children or ()]

    @cached_property
    def blocks(self) -> list[Block]:
        found = []
        for before, token in zip([None, *self.tokens], self.tokens, strict=False):
            if token.type == "fence" and token.map:
                comment = ""
                if before and before.type == "html_block" and before.map[1] == token.map[0]:
                    comment = before.content.strip().removeprefix("<!--").removesuffix("-->")
                line, language = token.map[0] + 1, token.info.strip()
                found.append(Block(self.name, line, language, token.content, comment.strip()))
        return found

    @cached_property
    def anchors(self) -> set[str]:
        """The fragments that GitHub makes of its headings."""
        anchors: set[str] = set()
        for token, inside in zip(self.tokens, self.tokens[1:], strict=False):
            if token.type == "heading_open":
                text = "".join(
                    part.content for part in inside.children or () if part.type != "html_inline"
                )
                plain = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
                repeated = sum(
                    re.fullmatch(rf"{re.escape(plain)}(-\d+)?", a) is not None for a in anchors
                )
                anchors.add(f"{plain}-{repeated}" if repeated else plain)
        return anchors


def _paths() -> list[Path]:
    inside = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.md")]
    return [path for path in [*ROOT.glob("*.md"), *inside] if "node_modules" not in path.parts]


PAGES = {
    name: Page(name) for name in sorted(path.relative_to(ROOT).as_posix() for path in _paths())
}


def block(page: str, marker: str, language: str) -> str:
    """Return the block of `language` that stands below the HTML comment `marker`."""
    [found] = [
        one.text for one in PAGES[page].blocks if one.comment == marker and one.language == language
    ]
    return found
