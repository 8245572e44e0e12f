"""Statistics: what happened when, as series."""
