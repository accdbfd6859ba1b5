"""A language model in the loop: tools described in the prompt, and the recursive agent.

This is the other way to chain tools: with `chaining` a server decides on the next call, and here a
model decides on each. Both work together, since the agent makes its calls through the chaining
client. `loop` is the agent; begin there.

Its modules:

- `settings`: which model, and which agent; `endpoint`: one reply of a model;
- `toolbox`: the tools of servers, as a model is offered them; `prompt`: what it reads;
- `loop`: the agent; `reply`: what a reply means; `transcript`: what happened in a request;
- `conversation`: a person at a terminal who talks to the agent.
"""
