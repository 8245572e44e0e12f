"""Repairing over HTTP: requeueing, discarding, restoring and purging dead letters, at once or in operations."""
