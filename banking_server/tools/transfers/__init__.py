"""Moving money: prepare a transfer, then confirm or cancel it.

One module per tool, `view` for those that the view of a transfer calls; `words` has what they say.
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
