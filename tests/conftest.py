"""What holds for all tests."""

from hypothesis import settings

# A failure prints what reproduces it anywhere. On a busy machine a slow example says nothing about the code.
settings.register_profile("standings", print_blob=True, deadline=None)
settings.load_profile("standings")
