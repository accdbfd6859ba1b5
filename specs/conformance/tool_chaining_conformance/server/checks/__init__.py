"""The checks of servers. To find a check, search for its id; to add one, write a function here.

- `greeting`: the server's messages before any tool is called;
- `form`: the form of a directive, and the results that may have one;
- `target`: the call that a directive asks for;
- `words`: the text that describes a directive, and the content beside it;
- `repeated`: a whole chain, and a call repeated in ways that must not matter.
"""

from tool_chaining_conformance.server.checks import form, greeting, repeated, target, words
from tool_chaining_conformance.server.checks.registry import CHECKS, ServerCheck

__all__ = ["CHECKS", "ServerCheck", "form", "greeting", "repeated", "target", "words"]
