"""Health of an installation: one verdict for the API, the dashboard, the doctor and the metrics."""
