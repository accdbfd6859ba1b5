"""Judging a client: run it against a mock server, case by case, and check what it did."""
