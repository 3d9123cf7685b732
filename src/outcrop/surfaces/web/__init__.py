"""The page for people and the JSON API: one set of views, served by ``outcrop serve`` or inside Fossil's skin."""
