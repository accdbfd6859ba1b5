"""The server's own language model: what `multiplex_tools` asks if the client offers none."""

import logging
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from banking_server.agent import Endpoint, ModelSettings, ModelUnavailable
from banking_server.tools import Infer
from banking_server.tools.inference import ArgumentNotFound

logger = logging.getLogger(__name__)


@asynccontextmanager
async def answering(settings: ModelSettings, *, to_its_owner: bool) -> AsyncIterator[Infer]:
    """Connect the configured model, for the time of the block.

    Whoever started the server is told what is wrong with their endpoint. Anybody else is told of
    an incident, and the rest stands in the log.
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
                if to_its_owner:
                    raise ArgumentNotFound(str(error)) from None
                incident = secrets.token_hex(4)
                logger.error("Incident %s: %s", incident, error)
                raise ArgumentNotFound(
                    "the bank's language model gives no answer now. Please try again later; if "
                    f"it persists, quote incident {incident}"
                ) from None
            if completion.cut_off:
                raise ArgumentNotFound("the model's answer was cut off")
            return completion.text

        yield infer
