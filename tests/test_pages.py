"""GitHub shows every page as it was meant: links, anchors, tables, pictures and code."""

import ast
import json
import re
import tomllib
from urllib.parse import unquote

import pytest
import yaml

from .kit.pages import PAGES, ROOT, Page

pytestmark = pytest.mark.quick

PICTURES = sorted(
    path for pattern in (".github/*.svg", ".github/*.png") for path in ROOT.glob(pattern)
)

each_page = pytest.mark.parametrize("page", PAGES.values(), ids=list(PAGES))


def links(page: Page) -> list[str]:
    """Where its links and pictures lead, those written in HTML among them."""
    written = [
        str(part.attrs[name])
        for part in page.inline
        for name in ("href", "src")
        if name in part.attrs
    ]
    html = [token.content for token in [*page.tokens, *page.inline] if "html" in token.type]
    for attributes in re.findall(r"<\w+ ([^>]+)>", "\n".join(html)):
        written += re.findall(r'(?:href|src|srcset)="([^"]+)"', attributes)
    return written


@each_page
def test_links_lead_to_a_file_and_to_a_heading_in_it(page: Page) -> None:
    wrong = []
    for link in links(page):
        if link.startswith("https://"):
            continue
        path, _, anchor = unquote(link).partition("#")
        target = (page.path.parent / path).resolve() if path else page.path
        there = target.is_relative_to(ROOT) and target.exists()
        if there and anchor:
            name = target.relative_to(ROOT).as_posix()
            there = name in PAGES and anchor in PAGES[name].anchors
        if not there:
            wrong.append(link)
    assert wrong == []


@each_page
def test_every_row_of_a_table_has_as_many_cells_as_its_head(page: Page) -> None:
    """GitHub drops a cell too many, and a row outside a table is a line of text."""
    lines = page.text.splitlines()
    code = {
        number
        for token in page.tokens
        if token.type in ("fence", "html_block") and token.map
        for number in range(*token.map)
    }
    rows = {number for number, line in enumerate(lines) if line.startswith("|")} - code
    for token in page.tokens:
        if token.type == "table_open" and token.map:
            cells = {len(re.findall(r"(?<!\\)\|", lines[n])) for n in range(*token.map)}
            assert len(cells) == 1, f"{page.name}, the table in line {token.map[0] + 1}"
            rows -= set(range(*token.map))
    assert not rows, f"{page.name}: no table in the lines {sorted(n + 1 for n in rows)}"


@each_page
def test_code_blocks_parse_as_their_language(page: Page) -> None:
    """A language that no reader of ours knows, such as Mermaid's, would need a test of its own."""
    assert [token for token in page.tokens if token.type == "code_block"] == [], "indented code"
    for block in page.blocks:
        where = f"{page.name}, line {block.line}"
        if block.language == "json":
            json.loads(block.text)
        elif block.language == "yaml":
            assert yaml.safe_load(block.text), where
        elif block.language == "toml":
            assert tomllib.loads(block.text), where
        elif block.language == "python":
            compile(block.text, where, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        else:
            assert block.language in ("sh", "text", "ts", "typescript"), where


def test_every_picture_has_a_light_and_a_dark_version_and_alt_text() -> None:
    found = set()
    for name, page in PAGES.items():
        shown = re.findall(
            r'<source media="\(prefers-color-scheme: dark\)" srcset="([\w./-]+)-dark\.(\w+)">\s*'
            r'<img alt="[^"]{40,}" src="\1-light\.\2"',
            page.text,
        )
        assert page.text.count("<picture>") == page.text.count("<img") == len(shown), name
        stills = r'\(prefers-reduced-motion: reduce\)[^"]*" srcset="([\w./-]+)"'
        found |= {(ROOT / name).parent / still for still in re.findall(stills, page.text)}
        found |= {
            (ROOT / name).parent / f"{picture}-{light}.{end}"
            for picture, end in shown
            for light in ("dark", "light")
        }
    assert found == set(PICTURES)
