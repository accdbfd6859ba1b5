"""The command that starts this server from anywhere."""

from importlib.metadata import Distribution
from pathlib import Path

import pytest

from banking_server.installing.program import NoProgram, command


def installed(folder: Path, origin: str = "") -> Distribution:
    """Return this package as it would stand in an environment."""
    record = folder / "lib/site-packages/banking_server-0.1.0.dist-info"
    (folder / "bin").mkdir(parents=True)
    record.mkdir(parents=True)
    names = ("banking-server", "tool-chaining-proxy", "tool-chaining-conformance")
    for name in names:
        (folder / "bin" / name).touch()
    (record / "RECORD").write_text("".join(f"../../bin/{name},,\n" for name in names))
    if origin:
        (record / "direct_url.json").write_text(origin)
    return Distribution.at(record)


def test_programs_by_their_full_paths(tmp_path: Path) -> None:
    folder = tmp_path / "a b"
    package = installed(folder)
    server = str(folder / "bin/banking-server")
    options = ["--customer", "CUST001"]
    plain = command(options, proxy=False, installed=package, prefix=folder, environ={})
    assert plain == [server, *options]
    behind = command(options, proxy=True, installed=package, prefix=folder, environ={})
    assert behind == [str(folder / "bin/tool-chaining-proxy"), "--", server, *options]


def test_no_programs(tmp_path: Path) -> None:
    package = installed(tmp_path)
    (tmp_path / "lib/site-packages/banking_server-0.1.0.dist-info/RECORD").unlink()
    with pytest.raises(NoProgram, match="no program banking-server"):
        command([], proxy=True, installed=package, prefix=tmp_path, environ={})


@pytest.mark.parametrize(
    ("origin", "source"),
    [
        ('{"url": "file:///home/ada/the%20bank", "dir_info": {}}', "/home/ada/the bank"),
        (
            '{"url": "https://git.example/bank", "vcs_info": {"vcs": "git", "commit_id": "a1"}}',
            "git+https://git.example/bank@a1",
        ),
        ('{"url": "https://example.com/bank.whl"}', "https://example.com/bank.whl"),
    ],
)
def test_what_uv_has_made_for_one_run_is_made_again(
    tmp_path: Path, origin: str, source: str
) -> None:
    (tmp_path / "CACHEDIR.TAG").touch()
    folder = tmp_path / "archive-v0/abc"
    run = command(
        ["--customer", "CUST001"],
        proxy=True,
        installed=installed(folder, origin),
        prefix=folder,
        environ={"UV": "/opt/uv"},
    )
    assert run[:5] == ["/opt/uv", "tool", "run", "--from", source]
    assert run[5:] == ["tool-chaining-proxy", "--", "banking-server", "--customer", "CUST001"]


@pytest.mark.parametrize(
    ("origin", "environ"), [("", {"UV": "/opt/uv"}), ('{"url": "file:///home/ada/bank"}', {})]
)
def test_what_will_be_deleted_is_not_written(
    tmp_path: Path, origin: str, environ: dict[str, str]
) -> None:
    folder = tmp_path / ".cache/pipx/abc"
    package = installed(folder, origin)
    with pytest.raises(NoProgram, match="install it first"):
        command([], proxy=True, installed=package, prefix=folder, environ=environ)
