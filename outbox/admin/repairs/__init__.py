"""Repairs over HTTP: requeueing, discarding, restoring and purging dead letters, at once or as operations."""
