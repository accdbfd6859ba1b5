"""Text in fewer characters: what a model is told is bounded, and mostly on one line."""


def cut(text: str, length: int) -> str:
    """Return a text of at most `length` characters, and a sign where something is left out."""
    return text if len(text) <= length else f"{text[:length]}\u2026"


def one_line(text: str, length: int) -> str:
    """Return the same of a text as one line."""
    return cut(" ".join(text.split()), length)
