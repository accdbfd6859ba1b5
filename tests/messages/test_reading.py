"""What was sent, read: numbers as they are written, and a refusal for what is no message."""

from typing import Any

import pytest

from banking_server.messages.reading import MAX_DEPTH, Refusal, read, too_long

PARSE, REQUEST, PARAMS = -32700, -32600, -32602


def call(argument: bytes, request_id: bytes = b"7") -> bytes:
    return (
        b'{"jsonrpc":"2.0","id":%s,"method":"tools/call",'
        b'"params":{"name":"a_tool","arguments":{"amount":%s,"memo":"a \\"text\\", \xc3\xbc"}}}'
    ) % (request_id, argument)


def refused(sent: bytes) -> tuple[int, Any]:
    found = read(sent)
    assert isinstance(found, Refusal), found
    assert found.owed
    assert "\n" not in found.message
    assert len(found.message) < 250
    return found.code, found.request_id


@pytest.mark.parametrize(
    ("literal", "number"),
    [
        *[(b"25", 25), (b"25.5", 25.5), (b"25.50", 25.5), (b"25.500", 25.5), (b"-0.0", 0.0)],
        *[(b"1e2", 100.0), (b"1E+2", 100.0), (b"2550e-2", 25.5), (b"999999999.99", 999999999.99)],
        *[(b"0.1", 0.1), (b"0.30000000000000004", 0.30000000000000004), (b"5e-324", 5e-324)],
        *[(b"1850.40000000000000000000000000", 1850.4), (b"0.00000000000000000000", 0.0)],
        *[(b"9007199254740993", 2**53 + 1), (b"1" * 4000, int("1" * 4000)), (b"1e22", 1e22)],
        (b"9007199254740992.0", float(2**53)),
    ],
)
def test_a_number_is_what_was_written(literal: bytes, number: Any) -> None:
    message = read(call(literal))
    assert isinstance(message, dict)
    assert message["params"]["arguments"]["amount"] == number


@pytest.mark.parametrize(
    ("literal", "instead"),
    [
        *[(b"0.010000000000000001", "0.01"), (b"25.500000000000000000001", "25.5")],
        *[(b"0.1000000000000000055511151231257827", "0.1"), (b"9007199254740993.0", "9007199")],
        *[(b"1e999", "inf"), (b"-1e400", "-inf"), (b"1e99999999999999999999", "inf")],
        *[(b"1e-999", "0.0"), (b"0." + b"1" * 1_000_000, "0.11111")],
    ],
)
def test_a_number_that_is_none_of_a_double_is_refused_by_name(literal: bytes, instead: str) -> None:
    assert refused(call(literal)) == (PARAMS, 7)
    found = read(call(literal))
    assert isinstance(found, Refusal)
    assert f"The number {literal.decode()[:40]}" in found.message
    assert f"would be taken for {instead}" in found.message


@pytest.mark.parametrize(
    ("argument", "code"),
    [
        *[(literal, PARSE) for literal in (b"NaN", b"Infinity", b"-Infinity", b'"\xff"')],
        (b"1" * 5000, PARAMS),
        *[(b'"\\ud800"', REQUEST), (b'"\\udc00\\ud800"', REQUEST), (b'{"\\uDFFF": 1}', REQUEST)],
        *[(b"[" * deep + b"]" * deep, REQUEST) for deep in (MAX_DEPTH, 10_000)],
        *[(b'{"id":' * deep + b"1" + b"}" * deep, REQUEST) for deep in (MAX_DEPTH, 10_000)],
        (b"[" * 1_000_000, REQUEST),
    ],
    ids=lambda value: str(value)[:20],
)
@pytest.mark.parametrize(
    ("sent", "request_id"),
    [
        *[(b"7", 7), (b"-7", -7), (b"0", 0), (b'"7"', "7"), (b'"\\u00fc \\" {"', '\u00fc " {')],
        *[(b"1.5", None), (b"1e2", None), (b'"\\ud800"', None), (b"[1]", None)],
        *[(b"true", None), (b"null", None)],
    ],
)
def test_the_id_is_given_back_where_there_is_one(
    argument: bytes, code: int, sent: bytes, request_id: Any
) -> None:
    assert refused(call(argument, sent)) == (code, request_id)


@pytest.mark.parametrize("request_id", [b"007", b"-", b'"\xff"', b'"\\x"', b'"a\nb"', b"1" * 5000])
def test_what_is_no_id_is_not_given_back(request_id: bytes) -> None:
    for argument in (b"NaN", b"1" * 5000, b"[" * 1000):
        assert refused(call(argument, request_id))[1] is None


def test_brackets_in_texts_and_beside_one_another_are_not_deep() -> None:
    for argument in (
        b'"' + b"[" * 1000 + b'"',
        b"[" + b"[],{}," * 1000 + b"1]",
        b"[" * 90 + b"]" * 90,
    ):
        assert isinstance(read(call(argument)), dict)


@pytest.mark.parametrize(
    ("sent", "code", "request_id"),
    [
        *[(text, PARSE, None) for text in (b"", b"garbage", b"\x00", b"{", b"'a'", b"[1,]")],
        (b'{"jsonrpc":"2.0","id":7,"method":"pi', PARSE, None),
        (b'\xef\xbb\xbf{"jsonrpc":"2.0","id":7,"method":"ping"}', PARSE, None),
        ('{"jsonrpc":"2.0","id":7,"method":"ping"}'.encode("utf-16"), PARSE, None),
        *[(text, REQUEST, None) for text in (b"[]", b"5", b"null", b'"text"', b"{}", b"true")],
        (b'[{"jsonrpc":"2.0","id":7,"method":"ping"}]', REQUEST, None),
        (b'{"id":7,"method":"ping"}', REQUEST, 7),
        (b'{"jsonrpc":2.0,"id":7,"method":"ping"}', REQUEST, 7),
        (b'{"jsonrpc":"2.0","id":7}', REQUEST, 7),
        (b'{"jsonrpc":"2.0","id":7,"method":5}', REQUEST, 7),
        (b'{"jsonrpc":"2.0","method":5}', REQUEST, None),
        *[
            (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":%s}' % params, REQUEST, 7)
            for params in (b"5", b"[1]", b'"text"', b"false")
        ],
        *[
            (b'{"jsonrpc":"2.0","id":%s,"method":"ping"}' % request_id, REQUEST, None)
            for request_id in (b"null", b"true", b"1.5", b"[7]", b"{}")
        ],
    ],
)
def test_what_is_no_message_is_refused(sent: bytes, code: int, request_id: Any) -> None:
    assert refused(sent) == (code, request_id)


@pytest.mark.parametrize(
    "sent",
    [
        b'{"jsonrpc":"2.0","method":"notifications/initialized","params":5}',
        b'{"jsonrpc":"2.0","method":"notifications/x","params":{"a":0.010000000000000001}}',
        b'{"jsonrpc":"2.0","method":"notifications/x","params":{"a":1,"a":1}}',
        b'{"jsonrpc":"2.0","method":"tools/call","params":{"requestState":5}}',
    ],
)
def test_nothing_is_owed_to_a_notification(sent: bytes) -> None:
    found = read(sent)
    assert isinstance(found, Refusal)
    assert not found.owed


@pytest.mark.parametrize("value", [b"NaN", rb'"\ud800"', b"1e999", b"[" * 200 + b"]" * 200])
def test_a_refusal_goes_to_who_waits(value: bytes) -> None:
    """An answer that cannot be read is none to whoever sent it, but to whoever asked."""
    for member, owed, is_answer in (
        (b'"id":7,"method":"x","params"', True, False),
        (b'"method":"x","params"', False, False),
        (b'"id":7,"result"', False, True),
        (b'"id":7,"error"', False, True),
        (b'"x"', True, False),
    ):
        found = read(b'{"jsonrpc":"2.0",%s:{"id":8,"method":"y","x":%s}}' % (member, value))
        assert isinstance(found, Refusal)
        assert (found.owed, found.is_answer) == (owed, is_answer), member
        assert found.request_id == (7 if b'"id":7' in member else None)


@pytest.mark.parametrize("params", [b"", b',"params":null', b',"params":{}', b',"_meta":5'])
def test_a_message_is_read(params: bytes) -> None:
    sent = b' {"jsonrpc":"2.0","id":7,"method":"ping"%s}\r\n' % params
    assert isinstance(read(sent), dict)


def test_the_id_of_what_is_too_long() -> None:
    long = call(b'"' + b"x" * 1000)[:500]
    assert too_long(long).request_id == 7
    assert too_long(b"x" * 1000).request_id is None
    nameless = long.replace(b'"id":7,', b"")
    for end, request_id in {
        b'xx"},"id":7}\n': 7,
        b'xx"}} , "id" : "a}" , "jsonrpc":"2.0","method":"ping" } \r\n': "a}",
        b'xx"},"x":[{"id":8}]}': None,
        b'xx"},"x":{"id":8}}': None,
        b'xx\\"id\\":8}"}}': None,
        b'xx,\\"id":8}': None,
        b'"id":8}]}}': None,
        b'xx"}}': None,
        b"": None,
    }.items():
        found = too_long(nameless, end)
        assert (found.request_id, found.owed) == (request_id, True), end
    assert too_long(long, b'xx"},"id":8}').request_id == 7
    answer = too_long(b'{"jsonrpc":"2.0","result":{"x":"', b'xx"},"id":7}')
    assert (answer.request_id, answer.is_answer, answer.owed) == (7, True, False)


def test_a_text_without_an_end_is_read_once() -> None:
    """Were each quotation mark in it tried as the beginning of a text, it would take hours."""
    endless = b'{"jsonrpc":"2.0","id":7,"method":"ping","x":"' + b'\\"' * 1_000_000
    assert too_long(endless).request_id == 7
    assert refused(endless + b"\xff") == (PARSE, 7)
    assert refused(endless.replace(b"x", b"[" * 1_000, 1)) == (PARSE, None)


@pytest.mark.parametrize("argument", [b'{"a":1,"a":1}', b'[{"a":1,"b":2,"\\u0061":3}]'])
def test_no_name_stands_in_an_object_twice(argument: bytes) -> None:
    assert refused(call(argument)) == (REQUEST, 7)
    assert isinstance(read(call(b'[{"a":{}},{"a":{"a":{}}}]')), dict)


@pytest.mark.parametrize(("sent", "request_id"), [(b'"id":7,"id":7', 7), (b'"id":7,"id":8', None)])
def test_an_id_that_is_two_is_none(sent: bytes, request_id: Any) -> None:
    found = read(b'{"jsonrpc":"2.0",%s,"method":"ping"}' % sent)
    assert isinstance(found, Refusal)
    assert (found.code, found.request_id, found.owed) == (REQUEST, request_id, True)
