"""The MCP server: what agents see of an index."""
