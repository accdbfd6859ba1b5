"""Write the version, the names and the owner into every file that has to repeat them.

    python specs/upstream/packages/names.py [--published]

They stand in `pyproject.toml` alone: the version and the bank's name on PyPI in `[project]`, the
owner in `[project.urls]`, the other names in `[tool.packages]`. With `--published`, a part needs
the other parts in this version; without it, from the folders of the checkout.
"""

import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
HERE = ROOT / "specs" / "upstream" / "packages"
NPM = ROOT / "specs" / "typescript"
LIBRARY = ROOT / "specs" / "python"
PROXY = ROOT / "specs" / "proxy"
SUITE = ROOT / "specs" / "conformance"

SCRIPTS = "[project.scripts]\n"
IMPORTED = re.compile(r"(?<=from ')(?!@modelcontextprotocol/)[^']+(?=/(client|server)')")
"""The name of the npm package where a program imports one of its halves."""

BUNDLE = """\
# Made by names.py. The wheels lie beside this file when the bundle is packed.
[project]
name = "{name}-bundle"
version = "{version}"
requires-python = "{python}"
dependencies = {names}

[tool.uv.sources]
{sources}
"""


def read(path: Path) -> Any:
    """Return the JSON of a file that is there, in which some members are set anew."""
    return json.loads(path.read_text("utf-8"))


def written(document: Any) -> str:
    """Return JSON as npm writes it."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def with_own_command(pyproject: str, project: Any) -> str:
    """Return `pyproject.toml` with a command of the package's name, which `uvx NAME` starts."""
    name, target = project["name"], project["scripts"]["banking-server"]
    # That of an earlier name; the commands that stay have no quotes.
    pyproject = re.sub(f'^".+" = "{target}"\n', "", pyproject, flags=re.MULTILINE)
    if name in tomllib.loads(pyproject)["project"]["scripts"]:
        return pyproject
    return pyproject.replace(SCRIPTS, f'{SCRIPTS}"{name}" = "{target}"\n')


def with_value(text: str, key: str, value: str) -> str:
    """Return a TOML or Python file with another text for `key`, at the start of a line."""
    return re.sub(f'(?m)^{key} = ".*"$', f'{key} = "{value}"', text, count=1)


def with_parts(pyproject: str, requirements: list[str]) -> str:
    """Return `pyproject.toml` with these requirements as those of the other parts."""
    return re.sub(
        r'(?<=  # From this checkout\.)(.*\n)(?:    "[^"]+(?: @ |==)[^"]+",\n)+',
        lambda found: found[1] + "".join(f'    "{line}",\n' for line in requirements),
        pyproject,
    )


def made(*, published: bool = False) -> dict[Path, str]:
    """Return what each file has to hold.

    Raises SystemExit if the owner cannot be read, or the version is no version of npm.
    """
    pyproject = (ROOT / "pyproject.toml").read_text("utf-8")
    about = tomllib.loads(pyproject)
    project, others = about["project"], about["tool"]["packages"]
    npm, library, proxy, suite = (others[key] for key in ("npm", "library", "proxy", "suite"))
    name, version, license_ = project["name"], project["version"], project["license"]
    python, repository = project["requires-python"], project["urls"]["Repository"]
    found = re.fullmatch(r"https://github\.com/([^/]+)/[^/]+", repository)
    if found is None:
        sys.exit(f"Repository is {repository}; it has to be https://github.com/ACCOUNT/NAME.")
    owner = found[1]
    if re.fullmatch(r"(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}", version, re.ASCII) is None:
        sys.exit(f"The version is {version}; it has to be three numbers, such as 1.2.3, for npm.")
    registered = f"io.github.{owner}/{name}"
    wheels = {
        part: f"{re.sub('[-_.]+', '_', part).lower()}-{version}-py3-none-any.whl"
        for part in (name, library, proxy, suite)
    }

    def from_here(part: str, folder: str) -> str:
        return f"{part}=={version}" if published else f"{part} @ {folder}"

    pyproject = with_parts(
        pyproject,
        [
            from_here(f"{library}[rules]", "{root:uri}/specs/python"),
            from_here(proxy, "{root:uri}/specs/proxy"),
            from_here(suite, "{root:uri}/specs/conformance"),
        ],
    )
    parts = {}
    for part, folder, package in (
        (library, LIBRARY, "tool_chaining"),
        (proxy, PROXY, "tool_chaining_proxy"),
        (suite, SUITE, "tool_chaining_conformance"),
    ):
        text = (folder / "pyproject.toml").read_text("utf-8")
        if folder == PROXY:
            text = with_parts(text, [from_here(f"{library}[rules]", "{root:parent:uri}/python")])
        for key, value in (("name", part), ("version", version), ("Repository", repository)):
            text = with_value(text, key, value)
        parts[folder / "pyproject.toml"] = text
        init = folder / package / "__init__.py"
        parts[init] = with_value(init.read_text("utf-8"), "__version__", version)

    code = (ROOT / "banking_server" / "__init__.py").read_text("utf-8")
    readme = (ROOT / "README.md").read_text("utf-8")
    program = (NPM / "examples" / "both-halves.mjs").read_text("utf-8")
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
        ROOT / "pyproject.toml": with_own_command(pyproject, project),
        ROOT / "banking_server" / "__init__.py": with_value(code, "__version__", version),
        **parts,
        ROOT / "README.md": re.sub(r"(?<=<!-- mcp-name: )\S+", registered, readme),
        HERE / "server.json": written(entry),
        HERE / "bundle" / "manifest.json": written(manifest),
        HERE / "bundle" / "pyproject.toml": BUNDLE.format(
            name=name,
            version=version,
            python=python,
            names=json.dumps([*wheels]),
            sources="\n".join(
                f'"{part}" = {{ path = "{wheel}" }}' for part, wheel in wheels.items()
            ),
        ),
        NPM / "package.json": written(package),
        NPM / "package-lock.json": written(lock),
        NPM / "examples" / "both-halves.mjs": IMPORTED.sub(npm, program),
    }


if __name__ == "__main__":
    for path, text in made(published=sys.argv[1:] == ["--published"]).items():
        path.write_text(text, "utf-8")
        print(path.relative_to(ROOT))
