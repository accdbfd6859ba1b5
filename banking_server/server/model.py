"""The server's own language model. `multiplex_tools` asks it if the client offers no model."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module

import anyio.to_thread

from banking_server.client.agent.settings import ModelSettings, connected_model, model_failure
from banking_server.tools.calling import Infer
from banking_server.tools.results import log_incident, try_again_later
from tool_chaining.expressions import NoValue


@asynccontextmanager
async def answering(settings: ModelSettings, *, show_problem: bool) -> AsyncIterator[Infer]:
    """Offer the configured model until the end of the block.

    With `show_problem`, an error names the problem of the endpoint: the user started the server.
    Otherwise it names only an incident, and the problem is in the log.
    """

    async def infer(instructions: str, question: str) -> str:
        # Slow to import: in a thread, since other callers are served meanwhile.
        await anyio.to_thread.run_sync(import_module, "pydantic_ai.models.openai")
        from pydantic_ai import Agent

        try:
            async with connected_model(settings) as model:
                ended = await Agent(model, instructions=instructions).run(question)
        except Exception as error:
            problem = model_failure(settings, error)
            if show_problem:
                raise NoValue(problem) from None
            # The traceback is not logged: it could show secrets of the endpoint.
            incident = log_incident("the bank's language model", problem)
            raise NoValue(
                f"the bank's language model gives no answer now. {try_again_later(incident)}"
            ) from None
        if ended.response.finish_reason == "length":
            raise NoValue("the model's answer was cut off")
        return ended.output

    yield infer
