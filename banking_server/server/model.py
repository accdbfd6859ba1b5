"""The server's own language model. `multiplex_tools` asks it if the client offers no model."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from banking_server.client.agent.endpoint import Endpoint, ModelUnavailable
from banking_server.client.agent.settings import ModelSettings
from banking_server.tools.calling import Infer
from banking_server.tools.results import log_incident, try_again_later
from tool_chaining.expressions import NoValue


@asynccontextmanager
async def answering(settings: ModelSettings, *, show_problem: bool) -> AsyncIterator[Infer]:
    """Connect the configured model until the end of the block.

    With `show_problem`, an error names the problem of the endpoint: the user started the server.
    Otherwise it names only an incident, and the problem is in the log.
    """
    async with Endpoint(settings) as endpoint:

        async def infer(instructions: str, question: str) -> str:
            messages = [
                {"role": "system", "content": instructions},
                {"role": "user", "content": question},
            ]
            try:
                completion = await endpoint.complete(messages)
            except ModelUnavailable as error:
                if show_problem:
                    raise NoValue(str(error)) from None
                # The traceback is not logged: it could show secrets of the endpoint.
                incident = log_incident("the bank's language model", str(error))
                raise NoValue(
                    f"the bank's language model gives no answer now. {try_again_later(incident)}"
                ) from None
            if completion.cut_off:
                raise NoValue("the model's answer was cut off")
            return completion.text

        yield infer
