"""Talking to what is judged: processes, transports, both eras of the protocol."""
