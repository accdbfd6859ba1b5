"""Why a configuration is left as it is."""


class Unreadable(Exception):
    """The configuration cannot be read, or not be changed; the message says why, without the file.

    It continues a sentence that begins with the file's name: "line 3: …".
    """


class TwiceThere(Unreadable):
    """A name stands more than once among its siblings, and hosts differ in which one counts."""

    def __init__(self, key: str) -> None:
        super().__init__(f'it has "{key}" twice')


class NotByName(Unreadable):
    """What should hold members by their names holds something else."""

    def __init__(self, key: str | None) -> None:
        place = "it" if key is None else f'its "{key}"'
        super().__init__(f"{place} does not hold what it should: members, each by its name")
