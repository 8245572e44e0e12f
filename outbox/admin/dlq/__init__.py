"""Dead letters over HTTP: lists, groups, one of them with everything."""
