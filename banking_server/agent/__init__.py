"""A language model in the loop: prompt-selected tools, and the recursive agent.

This is the other way to chain tools. Where `chaining` follows what a server decided, here a model
decides on each call; both work together, since the agent makes its calls through the chaining
client. It is for any MCP servers and any OpenAI-compatible endpoint. Read in this order:

- `settings`: which model, and the bounds;
- `endpoint`: ask the model, and what can go wrong;
- `toolbox`: the servers' tools as a model is told of them;
- `reply`: is a reply an answer, or a call;
- `audience`: what of a result the model is told, and what it never sees;
- `loop`: the agent;
- `chat`: a conversation with it at the terminal.
"""

from banking_server.agent.chat import Terminal, chat
from banking_server.agent.endpoint import (
    Completion,
    Endpoint,
    Message,
    ModelUnavailable,
    NativeCall,
    Usage,
)
from banking_server.agent.loop import (
    Agent,
    AllowReadOnly,
    Bounds,
    Called,
    Calling,
    CallPolicy,
    ChainStopped,
    Corrected,
    Declined,
    Entry,
    ModelReplied,
    Run,
    RunOutcome,
    Said,
    what_happened,
)
from banking_server.agent.settings import ModelNotConfigured, ModelSettings, load_model_settings
from banking_server.agent.toolbox import OfferedTool, Toolbox, ToolsUnavailable

__all__ = [
    "Agent",
    "AllowReadOnly",
    "Bounds",
    "CallPolicy",
    "Called",
    "Calling",
    "ChainStopped",
    "Completion",
    "Corrected",
    "Declined",
    "Endpoint",
    "Entry",
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
    "Terminal",
    "Toolbox",
    "ToolsUnavailable",
    "Usage",
    "chat",
    "load_model_settings",
    "what_happened",
]
