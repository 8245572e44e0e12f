"""The module of the metrics in the predecessor. Importing it raises an error that names the new place."""

raise ImportError(
    "outbox.metrics no longer exists: metrics with the same names are in prometheus_client.REGISTRY, "
    "and enable_metrics=False turns them off",
    name=__name__,
)
