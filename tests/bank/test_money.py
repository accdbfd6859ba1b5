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


@pytest.mark.parametrize(
    ("amount", "says"),
    [
        ("NaN", "NaN is not"),
        ("0", "0 is too small"),
        ("0.001", "0.001 is too small"),
        ("19.999", "19.999 has more than two decimals"),
        ("1e15", "1E+15 is too large"),
        ("1000000000.00", "too large: the largest amount is 999,999,999.99"),
        ("1E+999999", "too large"),
        ("9" * 100_000, "too large"),
    ],
)
def test_what_is_no_amount_is_refused(amount: str, says: str) -> None:
    with pytest.raises(InvalidAmount) as refused:
        to_minor(Decimal(amount))
    assert says in str(refused.value)
    assert len(str(refused.value)) < 200


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
