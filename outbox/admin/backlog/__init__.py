"""The backlog: how much waits, where, since when, and for how much longer."""
