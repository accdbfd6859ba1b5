"""The checks of servers. To find a check, search for its id; to add one, write a function here.

- `form`: what a server advertises, the form of a directive, and the results that may have one;
- `target`: the call that a directive asks for;
- `words`: the text that describes a directive, and the content beside it;
- `repeated`: a whole chain, and a call repeated in ways that must not matter.
"""

from tool_chaining_conformance.server.checks import form, repeated, target, words
from tool_chaining_conformance.server.checks.registry import CHECKS, ServerCheck

__all__ = ["CHECKS", "ServerCheck", "form", "repeated", "target", "words"]
