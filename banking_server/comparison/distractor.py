"""A second server beside the bank, with one tool that is plausible and never right.

Whoever is told to "speak with an agent", or that somebody has to approve, may take it for the way
there. In the ways with an agent its tool stands among the bank's. Under `multiplex, inferred` the
plan names the tools, so that no tool can distract: there, the customer's other accounts are what
may be picked by mistake.
"""

from typing import Annotated, Final

from mcp.server import MCPServer
from pydantic import Field

DISTRACTOR: Final = "budget_app"
"""What the hosts of the comparison call this server."""


def distracting_server() -> MCPServer[None]:
    """Return a server that runs in this process and has nothing to do with the bank."""
    server: MCPServer[None] = MCPServer(DISTRACTOR)

    @server.tool(title="Contact Support")
    def contact_support(
        message: Annotated[str, Field(description="What it is about, in a sentence.")],
    ) -> str:
        """Send a message to the people behind the user's household budget app, for example about
        a locked budget, a limit that was exceeded, or an approval. They have no access to the
        bank."""
        return "Your message has been sent to the budget app's support team."

    return server
