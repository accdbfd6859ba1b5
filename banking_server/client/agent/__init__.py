"""A language model in the loop: tools described in the prompt, and the recursive agent.

This is the other way to chain tools: with directives a server decides on the next call, and here a
model decides on each. Both work together, since the agent makes its calls through the chaining
client. Start with `loop`, the agent.

Its modules:

- `settings`: which model, and which agent; `endpoint`: one reply of a model;
- `toolbox`: the servers' tools as the model sees them; `prompt`: what it reads;
- `loop`: the agent; `reply`: what a reply means; `transcript`: what happened in a request;
- `conversation`: a person at a terminal who talks to the agent.
"""
