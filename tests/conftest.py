"""What all tests share."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require-programs",
        action="store_true",
        help="fail a test that needs a program this machine lacks, instead of skipping it",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "needs_program(missing): `missing` says which program is missing, or is None; the test is "
        "then skipped for that reason, or fails for it with --require-programs",
    )


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs_program"):
        (missing,) = mark.args
        if missing is None:
            continue
        if item.config.getoption("require_programs"):
            pytest.fail(missing, pytrace=False)
        pytest.skip(missing)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"
