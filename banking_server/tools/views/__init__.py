"""The views: cards that a host of MCP Apps shows in place of a tool's text.

A view is one HTML document, which `documents` makes of the files beside it. `offering` hides
everything about views from clients that do not show them. A view shows the tool's result, which the
host passes to it. It calls the bank's tools through the host, with the customer's own rights.

**The customer's click.** A view confirms a transfer with a secret. The secret is only in the
`_meta` of the result that the view shows, under `DATA`: in no text, structured content, log, audit
event or table. It is made of the bank's key (`transfers/records.py`), bound to the transfer,
its customer and its expiry, and compared in constant time. It is valid until the transfer is made,
expires, or is declined. A wrong secret is not counted: there are 2^256 of them. The tool that needs
it, `confirm_in_view`, is for views only: a host must not offer it to its model. If a view has a
secret, neither a form nor a code can confirm the transfer.

**Which hosts show `_meta` to a model.** MCP intends it for programs, and most hosts hide it from
the model: Claude Code, the OpenAI Agents SDK, LangChain, Pydantic AI. LlamaIndex's MCP tools 0.6.0,
Google's ADK 2.13.0 and MoonshotAI's kimi-code show the whole result. None of these is known to show
views, and a host gets a secret only if it declares views. ChatGPT shows views, and users reported
in May 2026 that its model could read `_meta` (openai/openai-apps-sdk-examples, issue 212). Such a
model has the secret, but in a host that implements MCP Apps correctly it has no tool to use it
with. (Tried, read or reported up to November 2026.) So a model can confirm by itself only if its
host has two faults.

**What a dishonest host can do.** It can confirm in the user's name, as it can with a form: the
server cannot tell it from an honest host. It cannot confirm another customer's transfer, or confirm
one twice. With `BANKING_CODES=desk`, no result has a code or a secret. A view then needs the code
that the customer gets from the bank's desk, and uses the same call as other clients. (The host sees
that code, and could use it for its transfer itself.)
"""
