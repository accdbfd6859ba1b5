"""Asking the client's own language model for an argument (MCP sampling).

A client whose model, or whose user, refuses answers with the text UNKNOWN (`inference`): the step
fails, and the rest of the call goes on. On 2025-11-25 an error does the same. On 2026-07-28 an
error has no way back to the server, since the answers travel in the client's next request: the
SDK's client raises it where the call was made, and what the finished steps gave is lost to it,
though not to the bank and its audit trail.
"""

from typing import Any, Final

from mcp import MCPError
from mcp.server.mcpserver import Context
from mcp.types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    SamplingMessage,
    TextContent,
)
from pydantic import ValidationError

from banking_server.tools.multiplex.inference import INSTRUCTIONS
from banking_server.tools.multiplex.places import ArgumentNotFound
from banking_server.tools.results import text
from banking_server.tools.sdk import sample

MAX_ANSWER_TOKENS: Final = 500
"""Tokens that a client's model may spend on one argument."""


def offers_sampling(ctx: Context[Any, Any]) -> bool:
    """Say whether the client lets servers ask its model."""
    capabilities = ctx.client_capabilities
    return capabilities is not None and capabilities.sampling is not None


def sampling_request(question: str) -> CreateMessageRequest:
    """Return the request that puts `question` to the client's model."""
    return CreateMessageRequest(params=_params(question))


async def ask_now(ctx: Context[Any, Any], question: str) -> str:
    """Ask the client's model over the open connection (2025-11-25) and return its answer.

    Raises `ArgumentNotFound`.
    """
    try:
        answer = await sample(ctx, _params(question))
    except MCPError as error:
        raise ArgumentNotFound(f"the client's model gave no answer: {error.message}") from None
    except ValidationError:
        raise ArgumentNotFound("the client's model gave no answer that can be read") from None
    return answer_text(answer)


def answer_text(answer: object) -> str:
    """Return the text of a model's answer. Raises `ArgumentNotFound` if it is not a whole text."""
    if not isinstance(answer, CreateMessageResult) or not isinstance(answer.content, TextContent):
        raise ArgumentNotFound("the client's model answered with something other than text")
    if answer.stop_reason == "maxTokens":
        raise ArgumentNotFound("the answer of the client's model was cut off")
    return answer.content.text


def _params(question: str) -> CreateMessageRequestParams:
    return CreateMessageRequestParams(
        messages=[SamplingMessage(role="user", content=text(question))],
        system_prompt=INSTRUCTIONS,
        max_tokens=MAX_ANSWER_TOKENS,
        temperature=0,
    )
