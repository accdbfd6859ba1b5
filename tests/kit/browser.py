"""A real browser, driven by playwright (the extra `[browser]`).

The browser is a Chromium that is installed, or that of `tests/node/package.json`.
"""

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any

from ..conformance.node_project import MODULES, missing, node

INSTALLED = shutil.which("chromium") or shutil.which("google-chrome")
LACKING: str | None = "playwright is not installed: pip install '.[browser]'"
if importlib.util.find_spec("playwright"):
    LACKING = None if INSTALLED else missing("@sparticuz/chromium")

UNPACK = (
    "import('@sparticuz/chromium').then(async it => console.log(await it.default.executablePath()))"
)


@contextmanager
def running_browser() -> Iterator[Any]:
    """Start the browser, until the end of the block."""
    from playwright.sync_api import sync_playwright

    with TemporaryDirectory(prefix="banking-server-browser-") as folder:
        program = INSTALLED
        if program is None:
            unpacked = subprocess.run(
                [str(node()), "-e", UNPACK],
                cwd=MODULES.parent,
                env={**os.environ, "TMPDIR": folder},
                capture_output=True,
                text=True,
                check=True,
            )
            program = unpacked.stdout.strip()
        with sync_playwright() as playwright:
            started = playwright.chromium.launch(
                executable_path=program, args=["--no-sandbox", "--no-zygote", "--disable-gpu"]
            )
            yield started
            started.close()


def contrast(page: Any) -> float:
    """The smallest contrast of any text with what is behind it, as WCAG counts it."""
    return float(page.evaluate(CONTRAST))


CONTRAST = """() => {
  const colour = (text) => {
    const numbers = text.match(/[\\d.]+/g).map(Number);
    const scale = text.startsWith("color(") ? 255 : 1;
    return [...numbers.slice(0, 3).map(value => value * scale), numbers[3] ?? 1];
  };
  const over = (top, under) =>
    top.slice(0, 3).map((value, at) => value * top[3] + under[at] * (1 - top[3]));
  const light = rgb => {
    const [r, g, b] = rgb.slice(0, 3).map(v => v / 255).map(
      v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const behind = node => {
    if (!node) return [255, 255, 255];
    const own = colour(getComputedStyle(node).backgroundColor);
    return own[3] === 1 ? own : over(own, behind(node.parentElement));
  };
  let least = 21;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !node.checkVisibility()) continue;
    const under = behind(node);
    const pair = [light(over(colour(getComputedStyle(node).color), under)), light(under)];
    pair.sort((a, b) => b - a);
    least = Math.min(least, (pair[0] + .05) / (pair[1] + .05));
  }
  return least;
}"""
