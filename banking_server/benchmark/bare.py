"""A server of the SDK that does nothing: one tool, one constant result, no token, no database.

`python -m banking_server.benchmark.bare PORT` serves HTTP, and without a port, stdio. What it takes
for a call is what any server takes that is made with this SDK.
"""

import sys
from typing import Final

from mcp.server import MCPServer
from mcp.types import CallToolResult, TextContent

TOOL: Final = "constant"
SAYS: Final = "Nothing was done."

_RESULT: Final = CallToolResult(
    content=[TextContent(type="text", text=SAYS)],
    _meta={"nextTool": {"tool": TOOL, "arguments": {}}},
)


async def constant() -> CallToolResult:
    """Do nothing."""
    return _RESULT


def _main() -> None:
    mcp = MCPServer("bare")
    mcp.add_tool(constant, name=TOOL)
    if len(sys.argv) == 1:
        mcp.run("stdio")
        return
    import uvicorn  # Not before it is needed: over stdio, starting is what is measured.

    # Stateless JSON answers and the same server as the bank's; uvicorn takes uvloop and httptools
    # where they are installed.
    uvicorn.run(
        mcp.streamable_http_app(stateless_http=True, json_response=True),
        port=int(sys.argv[1]),
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
    )


if __name__ == "__main__":
    _main()
