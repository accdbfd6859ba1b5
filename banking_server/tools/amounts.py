"""Amounts on the wire: JSON numbers, exact to the cent in both directions."""

import math
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

from banking_server.bank.money import MAX_MINOR, to_decimal


def _exact(value: Any) -> Decimal:
    """Return a JSON number as the decimal that was sent.

    The SDK parses JSON numbers as floats. The shortest text of a float is the number that was sent,
    up to 15 digits, which is more than an amount may have. Only a value that is not a finite number
    is refused here; the bank checks the amount itself.
    """
    if isinstance(value, Decimal):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a number such as 25 or 25.50")
    if isinstance(value, int):
        # Not by a float or a text: both have a limit, and JSON's integers have none.
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
"""An amount in structured content. It is a float only while JSON is written."""


def json_amount(minor: int) -> float:
    """Return minor units as the JSON number for a directive's arguments."""
    return float(to_decimal(minor))
