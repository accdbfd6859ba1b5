"""A language model in the loop: tools described in the prompt, and the recursive agent.

This is the other way to chain tools. With `chaining`, a server decides on the next call; here a
model decides on each call. Both work together, since the agent makes its calls through the chaining
client. It works with any MCP servers and any OpenAI-compatible endpoint. Read in this order:

- `settings`: which model, and the bounds;
- `configuration`: agents in a file: what each is told, and what it may use;
- `endpoint`: ask the model, and what can go wrong;
- `resources`: what the servers offer to know;
- `toolbox`: the servers' tools, as the model is told of them;
- `prompt`: the system message;
- `reply`: is a reply for the user, or does it ask for a call?
- `constrained`: the JSON schema that an endpoint can hold a reply to;
- `policy`: does the host allow a call, whether the model or a directive asks for it?
- `audience`: what the model is told of a result, and what it never sees;
- `transcript`: what happened in a request, and who decided on it;
- `history`: the conversation within its bound;
- `loop`: the agent;
- `conversation`: talking with it at the terminal.

All public names can be imported from here. A module is loaded when the first of its names is used,
so that a server without a model does not wait for it.
"""

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from banking_server.agent.configuration import (
        ANY_AGENT,
        AgentConfiguration,
        ConfigurationMistake,
        ServerConfiguration,
        load_agent,
    )
    from banking_server.agent.conversation import Terminal, chat
    from banking_server.agent.endpoint import (
        Completion,
        Endpoint,
        Message,
        ModelUnavailable,
        NativeCall,
        Usage,
    )
    from banking_server.agent.loop import Agent, Bounds
    from banking_server.agent.policy import AllowReadOnly, CallPolicy
    from banking_server.agent.resources import Known, MayRead
    from banking_server.agent.settings import ModelNotConfigured, ModelSettings, load_model_settings
    from banking_server.agent.toolbox import OfferedTool, Toolbox, ToolsUnavailable
    from banking_server.agent.transcript import (
        Called,
        Calling,
        ChainStopped,
        Corrected,
        Declined,
        Entry,
        Forgotten,
        ModelReplied,
        Run,
        RunOutcome,
        Said,
        what_happened,
    )

__all__ = [
    "ANY_AGENT",
    "Agent",
    "AgentConfiguration",
    "AllowReadOnly",
    "Bounds",
    "CallPolicy",
    "Called",
    "Calling",
    "ChainStopped",
    "Completion",
    "ConfigurationMistake",
    "Corrected",
    "Declined",
    "Endpoint",
    "Entry",
    "Forgotten",
    "Known",
    "MayRead",
    "Message",
    "ModelNotConfigured",
    "ModelReplied",
    "ModelSettings",
    "ModelUnavailable",
    "NativeCall",
    "OfferedTool",
    "Run",
    "RunOutcome",
    "Said",
    "ServerConfiguration",
    "Terminal",
    "Toolbox",
    "ToolsUnavailable",
    "Usage",
    "chat",
    "load_agent",
    "load_model_settings",
    "what_happened",
]

_MODULE_OF: Final = {
    "ANY_AGENT": "configuration",
    "Agent": "loop",
    "AgentConfiguration": "configuration",
    "AllowReadOnly": "policy",
    "Bounds": "loop",
    "CallPolicy": "policy",
    "Called": "transcript",
    "Calling": "transcript",
    "ChainStopped": "transcript",
    "Completion": "endpoint",
    "ConfigurationMistake": "configuration",
    "Corrected": "transcript",
    "Declined": "transcript",
    "Endpoint": "endpoint",
    "Entry": "transcript",
    "Forgotten": "transcript",
    "Known": "resources",
    "MayRead": "resources",
    "Message": "endpoint",
    "ModelNotConfigured": "settings",
    "ModelReplied": "transcript",
    "ModelSettings": "settings",
    "ModelUnavailable": "endpoint",
    "NativeCall": "endpoint",
    "OfferedTool": "toolbox",
    "Run": "transcript",
    "RunOutcome": "transcript",
    "Said": "transcript",
    "ServerConfiguration": "configuration",
    "Terminal": "conversation",
    "Toolbox": "toolbox",
    "ToolsUnavailable": "toolbox",
    "Usage": "endpoint",
    "chat": "conversation",
    "load_agent": "configuration",
    "load_model_settings": "settings",
    "what_happened": "transcript",
}

# Hidden from type checkers, which would otherwise take any name to be there (PEP 562).
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Load the module of a public name when the name is first used."""
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
