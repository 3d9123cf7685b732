"""What Outcrop sets up in other programs: hooks, services, MCP clients, a Fossil server."""
