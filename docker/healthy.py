"""Health check of the container: exits with 0 if the process is ready."""

import os
import sys
import urllib.error
import urllib.request

url = f"http://127.0.0.1:{os.environ.get('HEALTH_PORT', '8000')}/outbox/health/ready"
try:
    with urllib.request.urlopen(url, timeout=4) as answer:
        sys.stdout.write(answer.read().decode())
except urllib.error.HTTPError as error:
    sys.exit(error.read().decode())
except OSError as error:
    sys.exit(f"{url}: {error}")
