"""Values and rules without I/O: messages, outcomes, events, codecs, durations, clocks, URLs."""
