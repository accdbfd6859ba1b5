"""What is said over HTTP to a request that is not served: a status, and a JSON-RPC error."""

from collections.abc import Mapping

from starlette.responses import JSONResponse, Response

RequestId = str | int | None


def reply(
    status: int,
    request_id: RequestId,
    code: int,
    message: str,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return an error response to one request; the id is None where the request was not read."""
    error = {"code": code, "message": message}
    body = {"jsonrpc": "2.0", "id": request_id, "error": error}
    return JSONResponse(body, status_code=status, headers=headers)
