"""Rebuild: brings any lane back from the scorebook; the keeper does it by itself."""
