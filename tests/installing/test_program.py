"""The command that starts this server from anywhere."""

from importlib.metadata import Distribution
from pathlib import Path

import pytest

from banking_server.installing.program import NoProgram, command


def installed(folder: Path) -> Distribution:
    """Return this package as it would stand in an environment."""
    record = folder / "lib/site-packages/banking_server-0.1.0.dist-info"
    (folder / "bin").mkdir(parents=True)
    record.mkdir(parents=True)
    names = ("banking-server", "tool-chaining-proxy", "tool-chaining-conformance")
    for name in names:
        (folder / "bin" / name).touch()
    (record / "RECORD").write_text("".join(f"../../bin/{name},,\n" for name in names))
    return Distribution.at(record)


def test_programs_by_their_full_paths(tmp_path: Path) -> None:
    folder = tmp_path / ".cache/pypoetry/a b"
    package = installed(folder)
    (folder / "CACHEDIR.TAG").touch()  # As uv marks each environment of its own.
    server = str(folder / "bin/banking-server")
    options = ["--customer", "CUST001"]
    plain = command(options, proxy=False, installed=package, prefix=folder)
    assert plain == [server, *options]
    behind = command(options, proxy=True, installed=package, prefix=folder)
    assert behind == [str(folder / "bin/tool-chaining-proxy"), "--", server, *options]


def test_no_programs(tmp_path: Path) -> None:
    package = installed(tmp_path)
    (tmp_path / "lib/site-packages/banking_server-0.1.0.dist-info/RECORD").unlink()
    with pytest.raises(NoProgram, match="no program banking-server"):
        command([], proxy=True, installed=package, prefix=tmp_path)


@pytest.mark.parametrize("cache", [".cache/pipx", "pipx/Cache", "tagged/archive-v0"])
def test_what_will_be_deleted_is_not_written(tmp_path: Path, cache: str) -> None:
    folder = tmp_path / cache / "abc"
    package = installed(folder)
    (tmp_path / "tagged").mkdir(exist_ok=True)
    (tmp_path / "tagged/CACHEDIR.TAG").touch()
    (folder / "CACHEDIR.TAG").touch()
    with pytest.raises(NoProgram, match="run this again"):
        command([], proxy=True, installed=package, prefix=folder)
