"""Where the data files of this program are: `data/` and `specs/`."""

from pathlib import Path

_HERE = Path(__file__).parent


def packaged(name: str) -> Path:
    """Return the folder `name`: inside the package if it is installed, beside it in a checkout."""
    installed = _HERE / "packaged" / name
    return installed if installed.is_dir() else _HERE.parent / name


def demo_data() -> Path:
    """Return the folder of the demo data."""
    return packaged("data")
