"""Errors that a program shows to its user."""


class ForPeople(Exception):
    """An error whose message is one line for people: what was wrong, and what to do next."""
