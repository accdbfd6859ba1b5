"""Runs of a comparison that cost no process."""

from .support import in_this_process

__all__ = ["in_this_process"]
