"""The checks of servers. To find one, search for its id; to add one, write a function beside it.

- `greeting`: what the server says before any tool is called;
- `form`: what a directive looks like, and where it may stand;
- `target`: the call that a directive asks for;
- `words`: the directive in words, and the content beside it;
- `repeated`: a whole chain, and a call made again in ways that must not matter.
"""

from banking_server.conformance.server.checks import form, greeting, repeated, target, words
from banking_server.conformance.server.checks.registry import CHECKS, ServerCheck

__all__ = ["CHECKS", "ServerCheck", "form", "greeting", "repeated", "target", "words"]
