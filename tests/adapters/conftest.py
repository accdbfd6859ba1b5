"""A server that is not the bank, for all tests of the adapters."""

from ..server.conftest import elsewhere

__all__ = ["elsewhere"]
