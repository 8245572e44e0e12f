"""Exempts what the parent of all forks has imported from garbage collection, which would visit all of it, and so copy it."""

import gc

gc.collect()
gc.freeze()
