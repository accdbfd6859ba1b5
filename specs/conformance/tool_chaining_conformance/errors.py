"""Errors of the suite whose message is for people: one line, and no traceback."""

from typing import ClassVar


class ForPeople(Exception):
    """Ends the command with its message and `exit_code`."""

    exit_code: ClassVar[int] = 2


class ScenarioError(ForPeople):
    """A file cannot be used. The message names the file, the place and the error."""


class UsageError(ScenarioError):
    """The command line is wrong; the message says why."""


class CannotStart(ForPeople):
    """The program could not be started, or did not answer; the message says why."""

    exit_code = 3
