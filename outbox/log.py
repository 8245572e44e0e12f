"""Where the predecessor had its logger: importing it says where that is now."""

raise ImportError('outbox.log was the predecessor\'s: the logger is logging.getLogger("outbox")', name=__name__)
