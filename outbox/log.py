"""The module of the logger in the predecessor. Importing it raises an error that names the new place."""

raise ImportError('outbox.log no longer exists: the logger is logging.getLogger("outbox")', name=__name__)
