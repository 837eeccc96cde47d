"""The stack that `standings up` starts and supervises, from PyPI wheels alone."""
