"""Money: whole minor units (cents) with a currency beside them, and never a float.

Inside the bank an amount is an `int` of minor units. A `Decimal` appears only where an amount
comes in from the wire or goes out to it. Every currency held here has two decimal places.
"""

from decimal import Context, Decimal

from tool_chaining.text import one_line

MAX_MINOR = 99_999_999_999
"""The largest amount of one transfer, in minor units: 999,999,999.99."""

_CENT = Decimal("0.01")
_EXACT = Context(prec=28)
"""Wide enough for every amount up to `MAX_MINOR`, whatever the ambient decimal context is."""


class InvalidAmount(ValueError):
    """An amount nobody can pay; the message is written for people."""


def to_minor(amount: Decimal) -> int:
    """Return `amount` in minor units, exactly.

    Raises `InvalidAmount` unless the amount is finite, at least 0.01, at most `MAX_MINOR`
    minor units, and has no more than two decimals by value (5.1 and 5.10 are the same amount).
    """
    if not amount.is_finite():
        raise InvalidAmount(
            f"{_shown(amount)} is not an amount of money: give a number like 25.50."
        )
    if amount < _CENT:
        raise InvalidAmount(f"{_shown(amount)} is too small: the smallest amount is 0.01.")
    if amount > to_decimal(MAX_MINOR):
        raise InvalidAmount(
            f"{_shown(amount)} is too large: the largest amount is {to_decimal(MAX_MINOR):,}."
        )
    cents = amount.quantize(_CENT, context=_EXACT)
    if cents != amount:
        raise InvalidAmount(
            f"{_shown(amount)} has more than two decimals: give whole cents, like {cents}."
        )
    return int(cents.scaleb(2, context=_EXACT))


def to_decimal(minor: int) -> Decimal:
    """Return minor units as a decimal with exactly two places: 510 is `Decimal("5.10")`."""
    return Decimal(minor).scaleb(-2, context=_EXACT)


def format_money(minor: int, currency: str) -> str:
    """Return minor units for people: `format_money(123450, "USD")` is `"1,234.50 USD"`."""
    whole, cents = divmod(abs(minor), 100)
    return f"{'-' if minor < 0 else ''}{whole:,}.{cents:02} {currency}"


def _shown(amount: Decimal) -> str:
    """The offending value, short enough to repeat to the person who sent it."""
    return one_line(str(amount), 40)
