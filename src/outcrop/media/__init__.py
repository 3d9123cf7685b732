"""Media assets of a repository: listing their manifests, writing one, and checking a downloaded file against it.

Nothing here ever downloads anything. See ``docs/media.md``.
"""
