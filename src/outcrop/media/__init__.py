"""Media assets of a repository: their manifests, and checks of downloaded files. Nothing is ever downloaded."""
