"""The admin's own authentication, where the host has none to give: tokens, sessions of browsers, and limits for guessers."""
