"""The schemas of all the bank's tools, fed to what the frameworks make of them for a model.

LangChain, which needs an environment of its own, is in `test_other_environments.py`.
"""

import copy
from typing import Any

import pytest
from mcp.types import Tool

from ..kit.bank import World
from .support import missing

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.needs_program(missing("pydantic_ai", "pip install '.[dev]'")),
    pytest.mark.needs_program(missing("agents", "pip install '.[dev]'")),
]


@pytest.fixture
async def tools(world: World) -> list[Tool]:
    async with world.customer() as person:
        return (await person.client.list_tools()).tools


async def test_pydantic_ai_converts_them(tools: list[Tool]) -> None:
    from pydantic_ai.profiles import InlineDefsJsonSchemaTransformer
    from pydantic_ai.profiles.google import GoogleJsonSchemaTransformer
    from pydantic_ai.profiles.openai import OpenAIJsonSchemaTransformer

    of_models: list[Any] = [
        InlineDefsJsonSchemaTransformer,
        GoogleJsonSchemaTransformer,
        OpenAIJsonSchemaTransformer,
    ]
    for tool in tools:
        for transformer in of_models:
            for strict in (None, True, False):
                converted = transformer(copy.deepcopy(tool.input_schema), strict=strict).walk()
                assert set(tool.input_schema["properties"]) <= set(converted["properties"])


async def test_the_openai_agents_sdk_converts_them(tools: list[Tool]) -> None:
    from agents.mcp import MCPServerStdio, MCPUtil

    server = MCPServerStdio({"command": "never started"})
    for tool in tools:
        for strict in (True, False):
            function = MCPUtil.to_function_tool(tool, server, convert_schemas_to_strict=strict)
            described = function.params_json_schema["properties"]
            assert set(tool.input_schema["properties"]) == set(described)


async def test_fastmcp_makes_types_of_them(tools: list[Tool]) -> None:
    from fastmcp.utilities.json_schema_type import json_schema_to_type

    for tool in tools:
        assert tool.output_schema is not None
        for schema in (tool.input_schema, tool.output_schema):
            json_schema_to_type(copy.deepcopy(schema))
