"""Whether the audit was changed after it was written."""

from outbox.findings import Finding, error, warning, well
from outbox.postgres.audit import read_chain
from outbox.postgres.names import TableName
from outbox.postgres.pool import Connection

_BACKUP = "compare with a backup; whoever can write to the table has done it, so look at who may"


async def examine_audit(connection: Connection, table: TableName) -> list[Finding]:
    """Verifies the chain of the entries, all of them."""
    chain = await read_chain(connection, table)
    findings = []
    if chain.changed is not None:
        findings.append(error("audit", f"entry {chain.changed} is not as it was written, perhaps others, too", _BACKUP))
    if chain.unlinked is not None:
        findings.append(error("audit", f"before entry {chain.unlinked} there were others, which were taken out", _BACKUP))
    if chain.unchained is not None:
        advice = "restart processes of the release before; if there are none, look at who may write to the table"
        findings.append(warning("audit", f"entry {chain.unchained} was written without a hash, perhaps others, too", advice))
    if not findings:
        last = f", the last is {chain.last_id} with the hash {chain.last_hash}" if chain.entries else ""
        findings.append(well("audit", f"{chain.entries:,} entries are chained and as they were written{last}"))
    return findings
