"""Write the version, the names and the owner into every file that has to repeat them.

    python specs/upstream/packages/names.py

They stand in `[project]`, `[project.urls]` and `[tool.packages]` of `pyproject.toml`; the version
in `banking_server/__init__.py`.
"""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
HERE = ROOT / "specs" / "upstream" / "packages"
NPM = ROOT / "specs" / "implementations" / "typescript"

BUNDLE = """\
# Made by names.py. The wheel lies beside this file when the bundle is packed.
[project]
name = "{name}-bundle"
version = "{version}"
requires-python = "{python}"
dependencies = ["{name}"]

[tool.uv.sources]
{name} = {{ path = "{wheel}" }}
"""


def read(path: Path) -> Any:
    """Return the JSON of a file that is there, in which some members are set anew."""
    return json.loads(path.read_text("utf-8"))


def written(document: Any) -> str:
    """Return JSON as npm writes it."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def made() -> dict[Path, str]:
    """Return what each file has to hold."""
    about = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    project, npm = about["project"], about["tool"]["packages"]["npm"]
    name, python, license_ = project["name"], project["requires-python"], project["license"]
    source = (ROOT / about["tool"]["hatch"]["version"]["path"]).read_text("utf-8")
    version = source.split('__version__ = "')[1].split('"')[0]
    repository = project["urls"]["Repository"]
    owner = repository.split("/")[3]
    registered = f"io.github.{owner}/{name}"
    wheel = f"{name.replace('-', '_')}-{version}-py3-none-any.whl"

    readme = (ROOT / "README.md").read_text("utf-8")
    entry = read(HERE / "server.json")
    entry |= {"name": registered, "version": version}
    entry["repository"]["url"] = repository
    entry["packages"][0] |= {"identifier": name, "version": version}
    manifest = read(HERE / "bundle" / "manifest.json")
    manifest |= {"name": name, "version": version, "license": license_}
    manifest["author"]["name"] = owner
    manifest["repository"]["url"] = repository
    manifest["compatibility"]["runtimes"]["python"] = python
    package = read(NPM / "package.json")
    package |= {"name": npm, "version": version, "license": license_}
    package["repository"]["url"] = f"git+{repository}.git"
    package["repository"]["directory"] = NPM.relative_to(ROOT).as_posix()
    lock = read(NPM / "package-lock.json")
    lock |= {"name": npm, "version": version}
    lock["packages"][""] |= {"name": npm, "version": version, "license": license_}
    return {
        ROOT / "README.md": re.sub(r"(?<=<!-- mcp-name: )\S+", registered, readme),
        HERE / "server.json": written(entry),
        HERE / "bundle" / "manifest.json": written(manifest),
        HERE / "bundle" / "pyproject.toml": BUNDLE.format(
            name=name, version=version, python=python, wheel=wheel
        ),
        NPM / "package.json": written(package),
        NPM / "package-lock.json": written(lock),
    }


if __name__ == "__main__":
    for path, text in made().items():
        path.write_text(text, "utf-8")
        print(path.relative_to(ROOT))
