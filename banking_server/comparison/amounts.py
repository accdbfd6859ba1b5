"""Amounts of money in a text, however people write them."""

import re
from decimal import Decimal
from typing import Final

_GROUPED: Final = r"[0-9]{1,3}(?P<group>[.,'\u2019 \u00a0\u202f])[0-9]{3}(?:(?P=group)[0-9]{3})*"
_NUMBER: Final = re.compile(
    r"(?P<before>(?:(?:US)?\$|€|£|\b(?:USD|EUR))[\s*]*)?"
    # Not a part of a word, an id, a date or a time of day.
    r"(?<![0-9][-\u2013/:.,])(?:(?<![0-9A-Za-z_])|(?<=USD|EUR))"
    rf"(?P<whole>{_GROUPED}|[0-9]+)(?P<cents>[.,][0-9]{{1,2}})?"
    r"(?![0-9_]|(?!USD|EUR)[A-Za-z]|[-\u2013/:.,][0-9]|\s*%)"
    r"(?P<after>[\s*]*(?:USD|EUR|US dollars|dollars?|euros?|[$€£](?![0-9])))?"
)

_MONTH: Final = (
    "(?:January|February|March|April|May|June|July|August|September|October|November|December"
    r"|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\b"
)
_IN_FRONT_OF_A_DAY: Final = re.compile(rf"\b{_MONTH}\.?\s+$")
_COUNTED: Final = re.compile(
    rf"\s+(?:{_MONTH}|(?:\w+\s+)?(?:accounts?|days?|debits?|entries|items?|months?|payments?"
    r"|purchases?|transactions?|transfers?)\b)"
)
_YEARS: Final = range(1900, 2100)

_DENIED: Final = re.compile(
    r"(?:\bnot|n['\u2019]t|\bnever|\bno longer|\binstead of|\brather than)\s+"
    r"(?:(?!but\b)[a-z]+\s+){0,2}$",
    re.IGNORECASE,
)


def amounts_in(text: str) -> list[Decimal]:
    """Return the amounts of money that a text names, in their order, but for those it denies.

    `1,234.50`, `1234.5 USD`, `$1 234.50` and `1.234,50` are one; a minus is not looked at. A
    number with no currency, cents or groups of digits is an amount only where there is no other,
    and where it is no year. Days and counts are none.
    """
    numbers = [one for one in _NUMBER.finditer(text) if _may_be_meant(one)]
    marked = [one for one in numbers if _is_marked(one)]
    return [_value(one) for one in marked or numbers]


def _may_be_meant(number: re.Match[str]) -> bool:
    before, whole = number.string[: number.start()], number["whole"]
    if _DENIED.search(before):
        return False
    if number["before"] or number["after"] or number["cents"]:
        return True
    return not (
        _IN_FRONT_OF_A_DAY.search(before)
        or _COUNTED.match(number.string, number.end())
        or (len(whole) == 4 and int(whole) in _YEARS)
    )


def _is_marked(number: re.Match[str]) -> bool:
    return any(number[part] for part in ("before", "after", "cents", "group"))


def _value(number: re.Match[str]) -> Decimal:
    whole = re.sub("[^0-9]", "", number["whole"])
    return Decimal(f"{whole}.{(number['cents'] or '.0')[1:]}")
