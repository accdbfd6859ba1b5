"""The same tasks through every way of chaining tools, measured on the same bank.

Each run gets a new server over stdio and a new database, and is judged by what the database holds
afterwards, never by what was said. Every figure comes from a run that was made; the model is
whatever endpoint is configured. Read in this order:

- `tasks`: what is to be achieved, in the customer's words, and when it is;
- `ways`: the ways to chain tools;
- `run`: one run of a task in one of the ways, and all runs of a comparison;
- `table`: all runs as JSON, Markdown and a chart.
"""
