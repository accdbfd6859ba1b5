"""Declares tools, and refuses wrong arguments with a message for people.

The SDK ignores an unknown argument, parses strings that look like JSON, and reports errors in its
validator's words. `BankTool` changes all three for every tool.
"""

import json
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Final

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, ToolAnnotations
from pydantic import BeforeValidator, Field, ValidationError, WithJsonSchema
from pydantic_core import ErrorDetails

from banking_server import MOVES_MONEY
from banking_server.bank.rules import excerpt
from banking_server.tools.results import refuse, temporarily_unavailable, with_refusal_schema
from banking_server.tools.scopes import Scope, check_scope
from banking_server.tools.sdk import ExactTool, ToolError, UnexpectedToolError
from tool_chaining.errors import ForPeople


class NoDescription(ForPeople):
    """A tool has no docstring. The message is one line for people."""


SECRET_ARGUMENTS = frozenset({"confirmationCode", "secret"})
"""Arguments whose value is never repeated."""


def whole_number(value: Any) -> int:
    """Return a JSON number as an int. Raises ValueError if it is not a whole number."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise ValueError("must be a whole number such as 30")


WholeNumber = Annotated[int, BeforeValidator(whole_number), WithJsonSchema({"type": "integer"})]
"""A whole number as an argument: `30` and `30.0` are the same JSON number, `"30"` is not."""


MayAsk = Callable[[dict[str, Any], Context[Any, Any]], bool]
"""Whether a call asks the customer, by its unchecked arguments and the client."""


class BankTool(ExactTool):
    """A tool that checks its caller's scope, refuses arguments by name, and hides its failures."""

    scope: Scope = Field(exclude=True)
    """The OAuth scope that a call needs."""

    may_ask: MayAsk | None = Field(default=None, exclude=True)
    """Whether a call of a tool with questions asks them; None for a tool without questions."""

    without_questions: "BankTool | None" = Field(default=None, exclude=True)
    """The same tool for a call that asks nothing: the parameters of questions keep their defaults.
    Made once, since each call would have to prepare the questions otherwise."""

    def model_post_init(self, _: Any) -> None:
        """Make the tool for calls that ask nothing."""
        if self.resolved_params:
            self.without_questions = self.model_copy(update={"resolved_params": {}})

    async def run(
        self, arguments: dict[str, Any], context: Context[Any, Any], convert_result: bool = False
    ) -> Any:
        """Run the tool. Every failure except a protocol error becomes an `isError` result.

        Raises `ScopeMissing` if the caller's token lacks the tool's scope.
        """
        check_scope(self.scope, self.name)
        if "" in arguments.values():
            # Small models write `""` for an optional argument that they mean to leave out.
            optional = self.parameters["properties"].keys() - self.parameters.get("required", ())
            arguments = {k: v for k, v in arguments.items() if v != "" or k not in optional}
        tool = self
        if self.may_ask is not None and not self.may_ask(arguments, context):
            tool = self.without_questions or self
        try:
            return await super(BankTool, tool).run(arguments, context, convert_result)
        except UnexpectedToolError as error:
            return temporarily_unavailable(self.name, error.__cause__ or error)
        except ToolError as error:
            if isinstance(error.__cause__, ValidationError):
                return _refused(error.__cause__, self.parameters)
            # The only other cause: the customer's answer does not fit the question.
            return _invalid_answer()


def _refused(problems: ValidationError, schema: dict[str, Any]) -> CallToolResult:
    details = problems.errors(include_url=False)
    field = str(details[0]["loc"][0]) if details[0]["loc"] else ""
    text = "\n".join(_problem(detail, schema) for detail in details[:5])
    return refuse("invalid_arguments", excerpt(field), text)


def _invalid_answer() -> CallToolResult:
    words = "The answer does not fit the question. Please call again."
    return refuse("invalid_answer", None, words)


def _problem(detail: ErrorDetails, schema: dict[str, Any]) -> str:
    """Return which argument is wrong and what to write instead, without pydantic's words."""
    place, value = detail["loc"], detail["input"]
    name = excerpt(".".join(str(part) for part in place))
    if detail["type"] == "missing":
        return f"{name}: is missing, and this tool needs it."
    if detail["type"] == "extra_forbidden":
        if len(place) > 1:
            return f"{name}: is not allowed here."
        known = ", ".join(schema["properties"]) or "no arguments"
        return f"{name}: is not an argument of this tool, which takes {known}."
    rule = _RULES.get(detail["type"], "does not fit").format(**detail.get("ctx", {}))
    if name in SECRET_ARGUMENTS:
        return f"{name}: {rule}."
    return f"{name}: {rule}, but was {_shown(value)}."


_RULES: Final = {
    "value_error": "{error}",
    "model_type": "must be a JSON object",
    "dict_type": "must be a JSON object",
    "list_type": "must be a list",
    "string_type": "must be a string in quotation marks",
    "bool_type": "must be true or false",
    "literal_error": "must be {expected}",
    "too_short": "needs at least {min_length}",
    "too_long": "has {actual_length}: at most {max_length} are allowed",
}
"""What an argument must be, by pydantic's type of the error."""


def _shown(value: Any) -> str:
    """Return a caller's value as short JSON."""
    try:
        return excerpt(json.dumps(value))
    except (ValueError, RecursionError):
        # An integer with thousands of digits, or lists that are nested too deep.
        return "something too long to repeat"


def bank_tool(
    *,
    title: str,
    scope: Scope,
    read_only: bool = False,
    destructive: bool = False,
    idempotent: bool = True,
    moves_money: bool = False,
    names_next_tool: bool = False,
    may_ask: MayAsk | None = None,
    view: str | None = None,
    for_views: bool = False,
) -> Callable[[Callable[..., Any]], BankTool]:
    """Declare a function as a tool; its docstring is the description for the model.

    Raises `NoDescription` without one.

    `scope` is the OAuth scope that a call of the tool needs. The hints are MCP's `readOnlyHint`,
    `destructiveHint` and `idempotentHint`; `openWorldHint` is false for all tools of the bank.
    `moves_money` says in the tool's `_meta` that a call may move money. `names_next_tool` declares
    in its output schema that a result can name a next tool. `may_ask` says whether a call of a tool
    with questions asks them. `view` is the URI of the view that a
    host of MCP Apps shows for the tool's results. With `for_views`, only views may call the tool,
    and no model.
    """
    meta: dict[str, Any] = {MOVES_MONEY: True} if moves_money else {}
    if view is not None:
        meta["ui"] = {"resourceUri": view}
    if for_views:
        meta["ui"] = {"visibility": ["app"]}

    def declare(fn: Callable[..., Any]) -> BankTool:
        if not fn.__doc__:
            raise NoDescription(
                f"The tool {fn.__name__} has no description for a model. Descriptions are "
                "docstrings, which Python leaves out with -OO and PYTHONOPTIMIZE=2: start without."
            )
        return BankTool.declared(
            fn,
            title=title,
            description=" ".join(fn.__doc__.split()),
            annotations=ToolAnnotations(
                title=title,
                read_only_hint=read_only,
                destructive_hint=destructive,
                idempotent_hint=idempotent,
                open_world_hint=False,
            ),
            output_schema=partial(with_refusal_schema, names_next_tool=names_next_tool),
            meta=meta or None,
            scope=scope,
            may_ask=may_ask,
        )

    return declare
