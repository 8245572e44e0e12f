"""What the areas of the API are, for the `openapi_tags` of an application that publishes its document."""

TAGS = [
    {"name": "session", "description": "Logging in and out of a browser, and who one is."},
    {"name": "backlog", "description": "How much waits, where, since when, and for how much longer."},
    {"name": "messages", "description": "What is in the outbox, and why it is where it is."},
    {"name": "dlq", "description": "Dead letters: what failed for good, looked at, grouped and noted."},
    {"name": "repairing", "description": "Requeueing, discarding, restoring and purging dead letters."},
    {"name": "operations", "description": "Changes of many dead letters, made in batches: followed, held and ended."},
    {"name": "chains", "description": "Which message led to which, and what became of each."},
    {"name": "statistics", "description": "What happened when, as series."},
    {"name": "components", "description": "Relays, workers and others: who lives, and pausing them."},
    {"name": "events", "description": "What happens, as it happens."},
    {"name": "topology", "description": "Exchanges, queues and bindings, and what would mend them."},
    {"name": "audit", "description": "Who did what, or was not allowed to."},
    {"name": "health", "description": "Whether the process can do its work, and whether all is well with the installation."},
]
"""Each with a sentence, in the order in which they are shown."""
