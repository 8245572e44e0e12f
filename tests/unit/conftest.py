"""Settings for property tests."""

from hypothesis import settings

# The same examples everywhere, however slow the machine: a failure must be about the change that it stands at.
settings.register_profile("repeatable", deadline=None, derandomize=True, database=None)
settings.load_profile("repeatable")
