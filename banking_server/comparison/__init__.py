"""The same tasks through every way of chaining tools, measured on the same bank.

Each run gets a new server over stdio and a new database, and is judged by what the database holds
afterwards, never by what was said. Every figure comes from a run that was made; the model is
whatever endpoint is configured. Read in this order:

- `tasks`: what is to be achieved; `wordings`: each in twenty customers' words;
- `person`: the customer, by script, who agrees to what they asked for and to nothing else;
- `distractor`: the second server, whose tool is never right;
- `ways`: the ways to chain tools;
- `model_calls`: what the model was asked, and what that cost;
- `judge`: what the database says of a run; `amounts`: what an answer says of money;
- `failures`: why a run did not end as asked;
- `record`: a run as it is kept, and the file of runs;
- `run`: one run, and the runs of a whole comparison;
- `figures`: all runs together; `table` and `chart`: what is published of them.
"""
