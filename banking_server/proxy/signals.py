"""Which signals end the proxy: those that end any program, the loss of its terminal included."""

import signal
from contextlib import suppress


def end_when_the_terminal_is_gone() -> None:
    """Let SIGHUP end the proxy as SIGTERM does, unless whoever started it wants that ignored.

    By itself it would end this process at once, and leave the servers behind running.
    """
    with suppress(AttributeError):  # Windows has none.
        if_ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        signal.signal(
            signal.SIGHUP,
            signal.SIG_IGN if if_ignored else lambda *_: signal.raise_signal(signal.SIGTERM),
        )
