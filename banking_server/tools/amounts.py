"""Amounts on the wire: JSON numbers, exact to the cent in both directions."""

import math
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

from banking_server.bank.money import MAX_MINOR, to_decimal


def _exact(value: Any) -> Decimal:
    """Read a JSON number as the decimal it was written as.

    The SDK parses JSON numbers as floats, and a float's shortest text is the number that was
    sent, up to 15 digits: more than an amount may have. What the amount may *be* is the bank's
    rule, not the wire's, so only what is not a finite number is refused here.
    """
    if isinstance(value, Decimal):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a number such as 25 or 25.50")
    if isinstance(value, int):
        # Neither through a float nor through text: both have an end, and JSON's integers have none.
        return Decimal(value)
    if not math.isfinite(value):
        raise ValueError("must be a finite number")
    return Decimal(repr(value))


AmountIn = Annotated[
    Decimal,
    BeforeValidator(_exact),
    WithJsonSchema({"type": "number", "minimum": 0.01, "maximum": MAX_MINOR / 100}),
]
"""An amount as an argument."""

AmountOut = Annotated[
    Decimal,
    Field(allow_inf_nan=False),
    PlainSerializer(float, return_type=float, when_used="json"),
    WithJsonSchema({"type": "number"}),
]
"""An amount in structured content. The float lives only while JSON is written."""


def json_amount(minor: int) -> float:
    """Return minor units as the JSON number for a directive's arguments."""
    return float(to_decimal(minor))
