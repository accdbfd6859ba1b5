"""A real browser, driven by playwright (the extra `[browser]`).

The browser is a Chromium that is installed, or that of `tests/node/package.json`. Unlike
playwright's default, it shows scrollbars, as a person's browser does.
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
                executable_path=program,
                args=["--no-sandbox", "--no-zygote", "--disable-gpu"],
                ignore_default_args=["--hide-scrollbars"],
            )
            yield started
            started.close()
