"""A real MCP server that does its work in a process of its own."""

import sys
from pathlib import Path
from typing import Any

from agents.mcp import MCPServerStdio

_SERVER = """
import sys
from mcp.server.mcpserver import MCPServer
server = MCPServer("desk")

@server.tool()
def refund(order: str) -> str:
    with open(sys.argv[1], "a") as file:
        file.write(sys.argv[2].replace("ORDER", order) + "\\n")
    return f"refund ok {order}"

server.run()
"""


def desk_server(script: Path, effects: Path, line: str = "refund ORDER") -> MCPServerStdio:
    """The server, with one tool that refunds an order.

    Args:
        script: Where its program is put.
        effects: The file in which it notes what it did.
        line: What it notes.
    """
    script.write_text(_SERVER, encoding="utf-8")
    parameters: Any = {"command": sys.executable, "args": [str(script), str(effects), line]}
    return MCPServerStdio(params=parameters, name="desk", client_session_timeout_seconds=30)
