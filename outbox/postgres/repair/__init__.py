"""Dead letters and parked messages, changed: requeued, discarded, restored, purged; at once, or by an operation in batches."""
