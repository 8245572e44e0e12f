"""Dead letters over HTTP: lists, groups, and one with everything about it."""
