"""Certificates for tests of TLS: an authority of their own, and in files what a server and its client need."""

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlencode

import trustme


class Certificates:
    """An authority that no one else trusts, and what it signed for a server on this machine and for a client."""

    def __init__(self, folder: Path) -> None:
        """The files are in `folder` once `renew` has written them."""
        self.authority = folder / "authority.pem"
        self.server, self.server_key = folder / "server.pem", folder / "server.key"
        self.client, self.client_key = folder / "client.pem", folder / "client.key"
        self._folder = folder

    def renew(self) -> None:
        """Writes the files; those of an earlier authority are worth nothing any more."""
        self._folder.mkdir(exist_ok=True)
        authority = trustme.CA()
        authority.cert_pem.write_to_path(self.authority)
        for issued, certificate, key in (
            (authority.issue_cert("127.0.0.1"), self.server, self.server_key),
            (authority.issue_cert("outbox", common_name="outbox"), self.client, self.client_key),
        ):
            issued.cert_chain_pems[0].write_to_path(certificate)
            issued.private_key_pem.write_to_path(key)
        # Servers run as other users; the driver of PostgreSQL refuses a key that others can read.
        self.server_key.chmod(0o644)
        self.client_key.chmod(0o600)

    def options(self, authority: str, certificate: str, key: str) -> str:
        """The query of a client's URL, with its names of the three files."""
        files: Mapping[str, Path] = {authority: self.authority, certificate: self.client, key: self.client_key}
        return urlencode({name: str(path) for name, path in files.items()}, safe="/")
