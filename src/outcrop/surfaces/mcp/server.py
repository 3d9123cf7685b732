"""The tools, joined to the SDK: calls go to threads, and errors come back as results that a model can read."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

import anyio
from anyio.to_thread import run_sync
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams, TextContent

from outcrop.app.warm_index import WarmIndex
from outcrop.errors import OutcropError
from outcrop.surfaces.mcp import tools
from outcrop.surfaces.mcp.early_answers import INSTRUCTIONS, SERVER
from outcrop.surfaces.render import INVALID_PARAMS, explain, harmless, outcome

# Calls that run at the same time. One connection to the index serves them all, in turns.
AT_ONCE = 4

# Key in ``_meta`` of a failed call's JSON-RPC code.
CODE = "outcrop/code"

_log = logging.getLogger("outcrop")


def make_server(service: WarmIndex, *, structured: bool = True) -> Server[Any]:
    limiter = anyio.CapacityLimiter(AT_ONCE)

    async def list_tools(_: Any, __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult.model_validate({"tools": tools.listed(structured)})

    async def call_tool(_: Any, call: CallToolRequestParams) -> CallToolResult:
        tool = tools.TOOLS.get(call.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"there is no tool {call.name!r}; there is {', '.join(tools.TOOLS)}")
        try:
            work = partial(tool.run, service, arguments=call.arguments or {})
            # A call that the client cancelled ends by itself: it only reads, and its result is dropped.
            reply = await run_sync(work, abandon_on_cancel=True, limiter=limiter)
        except Exception as error:
            return _failed(error)
        text = TextContent(type="text", text=reply.text)
        return CallToolResult(content=[text], structured_content=reply.value if structured else None)

    server: Server[Any] = Server(
        SERVER["name"],
        title=SERVER["title"],
        version=SERVER["version"],
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        get_tool_input_schema=lambda name: tools.TOOLS[name].schema if name in tools.TOOLS else None,
    )
    # Questions are private: no spans for telemetry that the environment may set up.
    server.middleware.clear()
    return server


def _failed(error: Exception) -> CallToolResult:
    if not isinstance(error, OutcropError):
        _log.error("a tool failed", exc_info=error)
    what, fix = explain(error)
    text = harmless(f"{what}\n→ {fix}" if fix else what)
    return CallToolResult(
        content=[TextContent(type="text", text=text)], is_error=True, _meta={CODE: outcome(error).mcp}
    )
