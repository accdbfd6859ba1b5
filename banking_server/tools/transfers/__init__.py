"""Moving money: prepare a transfer, then confirm or cancel it.

One module per tool; `words` has what both say.
"""

from banking_server.tools.transfers.confirm import confirm_or_cancel_money_transfer
from banking_server.tools.transfers.prepare import prepare_money_transfer
from banking_server.tools.transfers.words import FROM_QUESTION, TO_QUESTION

__all__ = [
    "FROM_QUESTION",
    "TO_QUESTION",
    "confirm_or_cancel_money_transfer",
    "prepare_money_transfer",
]
