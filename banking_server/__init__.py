"""Deterministic tool chaining for MCP: the extension, a bank that uses it, and its suite."""

__version__ = "0.1.0"
