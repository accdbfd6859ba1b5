"""A language model in the loop, which chooses each first call; servers direct what follows.

- `settings`: which model, and which agent;
- `conversation`: an agent of Pydantic AI with the tools of servers, and what was said;
- `prompt_form`: tool calls in plain text, for any model.
"""
