"""The admin's own authentication, for hosts that have none: tokens, browser sessions, limits for guessing."""
