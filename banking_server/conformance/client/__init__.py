"""Judging a client: run it against a mock server, case by case, and look at what it did."""
