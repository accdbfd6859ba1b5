"""What a client sent, read before the MCP SDK reads it.

The SDK takes more than JSON (`NaN`, half a character), rounds numbers without a word, and over
stdio drops what it cannot read, so that whoever sent it waits.

- `reading`: a message, or why it is none;
- `names`: for which host an HTTP request may be, and from which page;
- `replies`: the error that an HTTP request gets which is not served;
- `lines`: the client over stdio;
- `sdk`: what is borrowed from the inner parts of the MCP SDK, the body of an HTTP request included.
"""
