"""Repairs over HTTP: requeues, discards, restores and purges dead letters, immediately or as operations."""
