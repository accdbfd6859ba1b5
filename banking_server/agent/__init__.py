"""A language model in the loop: tools described in the prompt, and the recursive agent.

This is the other way to chain tools: with `chaining` a server decides on the next call, and here a
model decides on each. Both work together, since the agent makes its calls through the chaining
client. `loop` is the agent; begin there.

`__init__.pyi` is the list of public names. A module is loaded when the first of its names is used,
so that a server without a model does not wait for it.
"""

from tool_chaining.lazily import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
