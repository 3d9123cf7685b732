"""The MCP server: what agents see of an index.

``tools.py`` says what there is to call and does it, ``places.py`` finds what is to be read, ``texts.py`` writes answers
for a model; ``service.py`` keeps the index open and loads its model in the background. ``server.py`` joins them to the
SDK; ``stdio.py`` and ``http.py`` are the transports, ``doorman.py`` answers while the SDK loads. ``clients.py`` and
``jsonc.py`` set clients up.
"""
