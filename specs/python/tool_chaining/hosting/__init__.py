"""Tools for programs that connect to any server: the proxy, and a host for a person.

- `untrusted`: limits on what a server that nobody trusts may send;
- `call_timer`: a time limit that does not count the time in which a person answers;
- `server_errors`: the standard error of a server over stdio, and the messages about its end.
"""
