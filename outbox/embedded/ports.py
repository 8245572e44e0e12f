"""Free ports on loopback."""

import random
import socket

# Below the range from which Linux (32768) and macOS (49152) take the ports of outgoing connections: while a server is
# restarted, no client can be given its port by accident.
_CANDIDATES = range(20_000, 32_000)


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on now. Nothing reserves it: whoever binds it must be ready to retry."""
    for port in random.sample(_CANDIDATES, 200):
        if is_free(port):
            return port
    raise OSError(f"no free port between {_CANDIDATES.start} and {_CANDIDATES.stop} on 127.0.0.1")


def is_free(port: int) -> bool:
    """Whether a server could bind the port of 127.0.0.1 now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
