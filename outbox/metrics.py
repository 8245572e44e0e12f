"""Where the predecessor had its metrics: importing it says where they are now."""

raise ImportError(
    "outbox.metrics was the predecessor's: metrics of the same names are in prometheus_client.REGISTRY, "
    "and enable_metrics=False turns them off",
    name=__name__,
)
