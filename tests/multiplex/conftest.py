"""No model but a test's own."""

from ..server.conftest import _nobodys_settings

__all__ = ["_nobodys_settings"]
