"""A language model in the loop: tools described in the prompt, and the recursive agent.

This is the other way to chain tools. With `chaining`, a server decides on the next call; here a
model decides on each call. Both work together, since the agent makes its calls through the chaining
client. It works with any MCP servers and any OpenAI-compatible endpoint. Read in this order:

- `settings`: which model;
- `configuration`: agents in a file: what each is told, and what it may use;
- `endpoint`: ask the model, and what can go wrong;
- `toolbox`: the servers' tools, as the model is told of them;
- `reply`: is a reply for the user, or does it ask for a call?
- `prompt`: the system message, and the JSON schema that an endpoint can hold a reply to;
- `policy`: does the host allow a call, whether the model or a directive asks for it?
- `audience`: what the model is told of a result, and what it never sees;
- `transcript`: what happened in a request, and who decided on it;
- `history`: the conversation within its bound;
- `loop`: the agent;
- `conversation`: talking with it at the terminal.

All public names can be imported from here; `__init__.pyi` is the list of them. A module is loaded
when the first of its names is used, so that a server without a model does not wait for it.
"""

from banking_server.lazily import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
