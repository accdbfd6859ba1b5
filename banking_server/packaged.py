"""Where the files are that this program brings along."""

from pathlib import Path

_HERE = Path(__file__).parent


def packaged(name: str) -> Path:
    """Return the folder `name`: inside the package where installed, beside it in a checkout."""
    installed = _HERE / "packaged" / name
    return installed if installed.is_dir() else _HERE.parent / name


def demo_data() -> Path:
    """Return the folder of the demo data."""
    return packaged("data")
