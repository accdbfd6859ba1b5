"""What the tests of the proxy share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ..kit.serving import served
from . import strange_server
from .wire import Wire


class Noted:
    """What happened to strange servers, in the order in which it did."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def until(self, line: str) -> None:
        await Wire.until(lambda: self.path.exists() and f"{line}\n" in self.path.read_text("utf-8"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the processes of a module leave what they say."""
    return tmp_path_factory.mktemp("proxy")


@pytest.fixture(scope="module")
def notes(folder: Path) -> Iterator[Noted]:
    """What the strange servers of this module note, in this process and in others."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STRANGE_NOTES", str(folder / "notes"))
        yield Noted(folder / "notes")


@pytest.fixture(scope="module")
def strange_url(notes: Noted) -> Iterator[str]:
    """The address of a strange server."""
    with served(strange_server.over_http()) as url:
        yield url
