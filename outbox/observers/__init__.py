"""Observers of the engine's events: log lines and metrics."""
