"""A server of the SDK that does nothing: one tool, one constant result, no token, no database.

`python -m tests.benchmark.bare PORT` serves HTTP, on the bank's HTTP server, and without a port,
stdio. What a call takes here is what it takes with any server that is made with this SDK.
"""

import sys

from mcp.server import MCPServer
from mcp.types import CallToolResult, TextContent

TOOL, SAYS = "constant", "Nothing was done."
_META = {"nextTool": {"tool": TOOL, "arguments": {}}}
_RESULT = CallToolResult(content=[TextContent(type="text", text=SAYS)], _meta=_META)


async def constant() -> CallToolResult:
    return _RESULT


def server() -> MCPServer:
    mcp = MCPServer("bare", log_level="ERROR")
    mcp.add_tool(constant, name=TOOL)
    return mcp


if __name__ == "__main__":
    if len(sys.argv) == 1:
        server().run("stdio")
    else:
        import uvicorn  # Which stdio does without.

        app = server().streamable_http_app(stateless_http=True, json_response=True)
        uvicorn.run(app, port=int(sys.argv[1]), log_config=None, access_log=False)
