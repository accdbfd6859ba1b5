"""The tools for transfers: prepare a transfer, then confirm or cancel it.

There is one module per tool. `view` has the tools for the view of a transfer, and `words` the texts
and the structured content.
"""
