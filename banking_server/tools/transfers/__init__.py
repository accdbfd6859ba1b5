"""The tools for transfers: prepare a transfer, then confirm or cancel it.

There is one module per tool. `view` has the tools for the view of a transfer, and `words` the texts
and the structured content.
"""

from banking_server.tools.transfers.confirm import confirm_or_cancel_money_transfer
from banking_server.tools.transfers.prepare import prepare_money_transfer
from banking_server.tools.transfers.view import confirm_in_view, look_at_transfer
from banking_server.tools.transfers.words import FROM_QUESTION, TO_QUESTION

__all__ = [
    "FROM_QUESTION",
    "TO_QUESTION",
    "confirm_in_view",
    "confirm_or_cancel_money_transfer",
    "look_at_transfer",
    "prepare_money_transfer",
]
