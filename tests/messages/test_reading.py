"""What was sent, read: numbers as they are written, and a refusal for what is no message."""

from typing import Any

import pytest

from banking_server.messages.reading import MAX_DEPTH, Refusal, read, too_long

pytestmark = pytest.mark.quick

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
    return found.code, found.request_id


@pytest.mark.parametrize(
    ("literal", "number"),
    [(b"25.50", 25.5), (b"1E+2", 100.0), (b"-0.0", 0.0), (b"9007199254740993", 2**53 + 1)],
)
def test_a_number_is_what_was_written(literal: bytes, number: Any) -> None:
    message = read(call(literal))
    assert isinstance(message, dict)
    assert message["params"]["arguments"]["amount"] == number


@pytest.mark.parametrize("literal", [b"0.010000000000000001", b"1e999", b"1e-999"])
def test_a_number_that_is_none_of_a_double_is_refused_by_name(literal: bytes) -> None:
    found = read(call(literal))
    assert isinstance(found, Refusal)
    assert (found.code, found.request_id) == (PARAMS, 7)
    assert f"The number {literal.decode()[:40]}" in found.message
    assert len(found.message) < 250


@pytest.mark.parametrize(
    ("sent", "code", "request_id"),
    [
        *[(text, PARSE, None) for text in (b"", b"garbage", b'"\xff"', b"[1,]")],
        *[(text, REQUEST, None) for text in (b"[]", b"5", b"{}")],
        (b'{"id":7,"method":"ping"}', REQUEST, 7),
        (b'{"jsonrpc":"2.0","id":7}', REQUEST, 7),
        (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":[1]}', REQUEST, 7),
        (b'{"jsonrpc":"2.0","id":7,"id":8,"method":"ping"}', REQUEST, None),
        *[(call(b"1", wrong), REQUEST, None) for wrong in (b"null", b"true", b"1.5", b'"\\ud800"')],
        *[(call(b"NaN", wrong), PARSE, None) for wrong in (b"007", b'"\\x"')],
        (call(b"1" * 5000), PARAMS, 7),
        (call(b'{"a":1,"a":1}', b'"\\u00fc {"'), REQUEST, "\u00fc {"),
        (call(b'"\\ud800"'), REQUEST, 7),
        (call(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH), REQUEST, 7),
        (call(b'{"id":' * 10_000 + b"1" + b"}" * 10_000), REQUEST, 7),
        (call(b"[" * 1_000_000), REQUEST, 7),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_is_no_message_is_refused(sent: bytes, code: int, request_id: Any) -> None:
    assert refused(sent) == (code, request_id)


@pytest.mark.parametrize("value", [b"NaN", b"1e999", b"[" * 200 + b"]" * 200])
def test_a_refusal_goes_to_who_waits(value: bytes) -> None:
    """Nothing is owed to a notification; and an answer is owed to whoever asked, as an error."""
    for member, owed, is_answer in (
        (b'"id":7,"method":"x","params"', True, False),
        (b'"method":"x","params"', False, False),
        (b'"id":7,"result"', False, True),
    ):
        found = read(b'{"jsonrpc":"2.0",%s:{"id":8,"method":"y","x":%s}}' % (member, value))
        assert isinstance(found, Refusal)
        assert (found.owed, found.is_answer) == (owed, is_answer), member


def test_the_id_of_what_is_too_long() -> None:
    long = call(b'"' + b"x" * 1000)[:500]
    assert too_long(long).request_id == 7
    nameless = long.replace(b'"id":7,', b"")
    for end, request_id in {
        b'xx"},"id":7}\n': 7,
        b'xx"}} , "id" : "a}" , "jsonrpc":"2.0","method":"ping" } \r\n': "a}",
        b'xx"},"x":{"id":8}}': None,
    }.items():
        assert too_long(nameless, end).request_id == request_id, end


def test_a_text_without_an_end_is_read_once() -> None:
    """Were each quotation mark in it tried as the beginning of a text, it would take hours."""
    endless = b'{"jsonrpc":"2.0","id":7,"method":"ping","x":"' + b'\\"' * 1_000_000
    assert too_long(endless).request_id == 7
    assert refused(endless + b"\xff") == (PARSE, 7)
