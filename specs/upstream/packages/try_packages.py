"""Use the packages as their receivers do: the wheels by the registry's entry, the bundle in a host.

    python specs/upstream/packages/try_packages.py

Needs Node, npm, uv and the network. `mcpb` validates and packs the bundle, and says what a host
makes of its manifest and of a filled-in form.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

HERE = Path(__file__).parent
MCPB = "@anthropic-ai/mcpb@2.1.2"

CONFIG_OF_A_HOST = """
import { readFileSync } from 'node:fs';
import { getMcpConfigForManifest } from '@anthropic-ai/mcpb';
const [extensionPath, folder] = process.argv.slice(1);
const manifest = JSON.parse(readFileSync(`${extensionPath}/manifest.json`, 'utf8'));
const userConfig = { folder };
console.log(JSON.stringify(await getMcpConfigForManifest({
  manifest, extensionPath, systemDirs: {}, userConfig, pathSeparator: '/' })));
"""


def run(*command: object, cwd: Path) -> str:
    """Run a command and return its output; a failure ends the program with all of it."""
    words = [str(word) for word in command]
    ran = subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=500)
    if ran.returncode != 0:
        sys.exit(f"{' '.join(words)} ended with {ran.returncode}:\n{ran.stdout}{ran.stderr}")
    return ran.stdout


async def sees_the_locked_account(server: StdioServerParameters) -> None:
    """Start the server, and be led from the locked account to an agent."""
    async with Client(stdio_client(server)) as client:
        transfer = {"fromAccountId": "acc_checking_001", "toAccountId": "acc_savings_001"}
        called = await client.call_tool("prepare_money_transfer", {**transfer, "amount": 25})
    next_tool = (called.meta or {}).get("nextTool", {}).get("tool")
    if next_tool != "request_agent_handoff":
        sys.exit(f"The locked account was not reported: {called}")
    print(f"{server.command}: the locked account leads to {next_tool}", flush=True)


def tried(folder: Path) -> None:
    """Build, pack and start both in the folder."""
    checkout = folder / "checkout"
    left_out = shutil.ignore_patterns(".*", "node_modules", "__pycache__", "dist")
    shutil.copytree(HERE.parents[2], checkout, ignore=left_out)
    names = checkout / HERE.relative_to(HERE.parents[2]) / "names.py"
    run(sys.executable, names, "--published", cwd=checkout)
    for part in (".", "specs/python", "specs/proxy", "specs/conformance"):
        run("uv", "build", "--wheel", "--out-dir", folder / "dist", checkout / part, cwd=folder)
    [package] = json.loads((HERE / "server.json").read_text("utf-8"))["packages"]
    # As `uvx` does it with the name alone, once the wheel is published.
    command = ["--find-links", str(folder / "dist"), package["identifier"]]
    env = {**os.environ, "BANKING_DATABASE": str(folder / "registry" / "bank.db")}
    registry = StdioServerParameters(command=package["runtimeHint"], args=command, env=env)
    anyio.run(sees_the_locked_account, registry)

    shutil.copytree(HERE / "bundle", folder / "bundle")
    for wheel in folder.glob("dist/*.whl"):
        shutil.copy(wheel, folder / "bundle")
    run("npm", "install", "--ignore-scripts", "--prefix", folder, MCPB, cwd=folder)
    mcpb = folder / "node_modules" / ".bin" / "mcpb"
    run(mcpb, "validate", folder / "bundle" / "manifest.json", cwd=folder)
    run(mcpb, "pack", folder / "bundle", folder / "packed.mcpb", cwd=folder)
    unpacked = folder / "unpacked"
    run(mcpb, "unpack", folder / "packed.mcpb", unpacked, cwd=folder)
    program = ("node", "--input-type=module", "--eval", CONFIG_OF_A_HOST)
    config = json.loads(run(*program, unpacked, folder / "form", cwd=folder))
    config["env"] = {**os.environ, **config["env"]}
    anyio.run(sees_the_locked_account, StdioServerParameters(**config))
    if not (folder / "form" / "bank.db").is_file():
        sys.exit("The database is not in the folder that the form names.")


if __name__ == "__main__":
    with TemporaryDirectory() as scratch:
        tried(Path(scratch))
