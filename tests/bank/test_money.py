"""Amounts are exact, or refused."""

from decimal import Decimal, localcontext

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from banking_server.bank.money import (
    MAX_MINOR,
    InvalidAmount,
    format_money,
    to_decimal,
    to_minor,
)

pytestmark = pytest.mark.quick

CENT, MOST = Decimal("0.01"), Decimal("999999999.99")


@given(st.decimals() | st.decimals(CENT, MOST, places=2))
@example(Decimal("5.1000000000000000000000000000000000000"))
@example(CENT)
def test_never_anything_but_the_exact_amount(amount: Decimal) -> None:
    try:
        minor = to_minor(amount)
    except InvalidAmount:
        assert not amount.is_finite() or not CENT <= amount <= MOST or amount % CENT
        return
    assert Decimal(minor) / 100 == amount
    assert 1 <= minor <= MAX_MINOR


def test_the_ambient_context_does_not_matter() -> None:
    with localcontext() as context:
        context.prec = 3
        assert to_minor(Decimal("999999999.99")) == MAX_MINOR
        assert to_decimal(MAX_MINOR) == Decimal("999999999.99")


def test_money_for_people() -> None:
    shown = [format_money(minor, "USD") for minor in (123_450, 0, 5, -123_450)]
    assert shown == ["1,234.50 USD", "0.00 USD", "0.05 USD", "-1,234.50 USD"]
