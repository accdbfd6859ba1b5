"""How a tool is declared, and what it does with arguments it was not made for.

The SDK ignores an unknown argument, guesses at strings that look like JSON, and reports
mistakes in its validator's words. `BankTool` mends all three, for every tool, here.
"""

import json
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Final

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, ToolAnnotations
from pydantic import BeforeValidator, Field, ValidationError, WithJsonSchema
from pydantic_core import ErrorDetails

from banking_server.bank.rules import excerpt
from banking_server.chaining.consent import MOVES_MONEY
from banking_server.tools.results import published, refuse, temporarily_unavailable
from banking_server.tools.scopes import Scope, check_scope
from banking_server.tools.sdk import ExactTool, ToolError, UnexpectedToolError, question_keys

SECRET_ARGUMENTS = frozenset({"confirmationCode", "secret"})
"""Arguments whose value is never repeated."""


def whole_number(value: Any) -> int:
    """Return a JSON number as the whole number that it is. Raises ValueError if it is not one."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise ValueError("must be a whole number such as 30")


WholeNumber = Annotated[int, BeforeValidator(whole_number), WithJsonSchema({"type": "integer"})]
"""A whole number as an argument: `30` and `30.0` are the same JSON number, `"30"` is not."""


NothingToAsk = Callable[[dict[str, Any], Context[Any, Any]], dict[str, Any] | None]


class BankTool(ExactTool):
    """A tool that checks its caller's scope, refuses arguments by name, and hides its failures."""

    scope: Scope = Field(exclude=True)
    """The OAuth scope that a call needs."""

    nothing_to_ask: NothingToAsk | None = Field(default=None, exclude=True)
    """Given arguments that may not fit. Returns what the tool's questions would find out if they
    find it without asking anybody, so that they need not be prepared; else None."""

    async def run(
        self, arguments: dict[str, Any], context: Context[Any, Any], convert_result: bool = False
    ) -> Any:
        """Run the tool; every failure but a protocol error becomes an `isError` result.

        Raises `ScopeMissing` if the caller's token lacks the tool's scope.
        """
        check_scope(self.scope, self.name)
        answers = context.input_responses
        if answers and self.resolver_plans and not question_keys(self) >= answers.keys():
            return _odd_answer()
        tool = self
        known = None if self.nothing_to_ask is None else self.nothing_to_ask(arguments, context)
        if known is not None:
            tool = self.model_copy(update={"fn": partial(self.fn, **known), "resolved_params": {}})
        try:
            return await super(BankTool, tool).run(arguments, context, convert_result)
        except UnexpectedToolError as error:
            return temporarily_unavailable(self.name, error.__cause__ or error)
        except ToolError as error:
            if isinstance(error.__cause__, ValidationError):
                return _refused(error.__cause__, self.parameters)
            # The only cause left: the customer's answer does not fit our question.
            return _odd_answer()


def _refused(problems: ValidationError, schema: dict[str, Any]) -> CallToolResult:
    details = problems.errors(include_url=False)
    field = str(details[0]["loc"][0]) if details[0]["loc"] else ""
    text = "\n".join(_in_words(detail, schema) for detail in details[:5])
    return refuse("invalid_arguments", excerpt(field), text)


def _odd_answer() -> CallToolResult:
    words = "The answer does not fit the question. Please call again."
    return refuse("invalid_answer", None, words)


def _in_words(detail: ErrorDetails, schema: dict[str, Any]) -> str:
    """Say which argument is wrong and what to write instead, in no words of pydantic's."""
    place, value = detail["loc"], detail["input"]
    name = excerpt(".".join(str(part) for part in place))
    if detail["type"] == "missing":
        return f"{name}: is missing, and this tool cannot do without it."
    if detail["type"] == "extra_forbidden":
        known = ", ".join(_members(schema, place[:-1])) or "no arguments"
        what = "an argument of this tool, which takes" if len(place) == 1 else "known here, beside"
        return f"{name}: is not {what} {known}."
    rule = _RULES.get(detail["type"], "does not fit").format(**detail.get("ctx", {}))
    if name in SECRET_ARGUMENTS:
        return f"{name}: {rule}."
    can_be_left_out = len(place) == 1 and place[0] not in schema.get("required", ())
    instead = "leave it out" if value is None and can_be_left_out else _instead(detail)
    return f"{name}: {rule}, but was {_shown(value)}{f': {instead}' if instead else ''}."


def _members(schema: dict[str, Any], place: tuple[int | str, ...]) -> dict[str, Any]:
    """Return the members that the object at a place in the arguments can have."""
    node = schema
    for part in place:
        node = node["items"] if isinstance(part, int) else node["properties"][part]
        node = node.get("anyOf", [node])[0]
        node = schema["$defs"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node
    members: dict[str, Any] = node["properties"]
    return members


_RULES: Final = {
    "value_error": "{error}",
    "model_type": "must be a JSON object",
    "dict_type": "must be a JSON object",
    "list_type": "must be a list",
    "string_type": "must be a text in quotation marks",
    "bool_type": "must be true or false",
    "literal_error": "must be {expected}",
    "too_short": "needs at least {min_length}",
    "too_long": "has {actual_length}: at most {max_length} are allowed",
}
"""What an argument must be, by pydantic's type of the mistake."""

_JSON_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "value_error": (int, float),
    "model_type": (dict,),
    "dict_type": (dict,),
    "list_type": (list,),
    "bool_type": (bool,),
}
"""What fits where something else than a text is wanted; our own rules are about numbers."""


_REPEATED: Final = 40
"""Characters of a value that are repeated as what to write; it must be all of it."""


def _instead(detail: ErrorDetails) -> str:
    """Say what to write where the value is right but for its quotation marks; else nothing."""
    value = detail["input"]
    if detail["type"] == "string_type" and type(value) in (int, float):
        return f'write "{_shown(value)}"'
    if not isinstance(value, str):
        return ""
    try:
        meant = json.loads(value, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return ""
    if type(meant) not in _JSON_TYPES.get(detail["type"], ()):
        return ""
    shown = value.strip() if len(value) <= _REPEATED else "it"
    return f"write {shown}, without quotation marks"


def _shown(value: Any) -> str:
    """Return a caller's value as the JSON that it came as, short enough to be repeated."""
    try:
        return excerpt(json.dumps(value))
    except (ValueError, RecursionError):
        # An integer of thousands of digits, or lists in lists without end.
        return "something too long to repeat"


def bank_tool(
    *,
    title: str,
    scope: Scope,
    read_only: bool = False,
    destructive: bool = False,
    idempotent: bool = True,
    moves_money: bool = False,
    leads_on: bool = False,
    nothing_to_ask: NothingToAsk | None = None,
    view: str | None = None,
    for_views: bool = False,
) -> Callable[[Callable[..., Any]], BankTool]:
    """Declare a function as a tool; its docstring is the description that a model reads.

    `scope` is the OAuth scope that a call of the tool needs. The hints are MCP's `readOnlyHint`,
    `destructiveHint` and `idempotentHint`; no tool of the bank reaches beyond it, so
    `openWorldHint` is false. `moves_money` says in the tool's `_meta` that a call may move money.
    `leads_on` declares in its output schema that a result can name a next tool.
    `view` is the URI of the view that a host of MCP Apps shows of the tool's results; a tool that
    is `for_views` alone is called by them, and by no model.
    """
    meta: dict[str, Any] = {MOVES_MONEY: True} if moves_money else {}
    if view is not None:
        meta["ui"] = {"resourceUri": view}
    if for_views:
        meta["ui"] = {"visibility": ["app"]}

    def declare(fn: Callable[..., Any]) -> BankTool:
        return BankTool.declared(
            fn,
            title=title,
            description=" ".join((fn.__doc__ or "").split()),
            annotations=ToolAnnotations(
                title=title,
                read_only_hint=read_only,
                destructive_hint=destructive,
                idempotent_hint=idempotent,
                open_world_hint=False,
            ),
            output_schema=partial(published, leads_on=leads_on),
            meta=meta or None,
            scope=scope,
            nothing_to_ask=nothing_to_ask,
        )

    return declare
