"""The HTTP API: submit (with a key) and read (public)."""
