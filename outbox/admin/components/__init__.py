"""Components: relays, workers, archivers and maintenance, their heartbeats, and pauses."""
