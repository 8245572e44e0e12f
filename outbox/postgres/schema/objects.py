"""Names of the objects of each table, derived from its name, so that two tables never share an object."""

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

from outbox.core.destinations import DEFAULT, validate_destination
from outbox.errors import IdentifierError
from outbox.postgres.queries import TableName, derived, queries, quoted

OUTBOX_TABLE = "outbox_table"
VERSION_TABLE = "outbox_schema_version"
SATELLITES = {
    "subscription": "outbox_subscription",
    "delivery": "outbox_delivery",
    "dead_letter": "outbox_dead_letter",
    "edition": "outbox_dead_letter_edition",
    "operation": "outbox_operation",
    "operation_item": "outbox_operation_item",
    "inbox": "outbox_inbox",
    "history": "outbox_history",
    "stats": "outbox_stats",
    "component": "outbox_component",
    "control": "outbox_control",
    "lease": "outbox_lease",
    "relay": "outbox_relay",
    "audit": "outbox_audit",
    "session": "outbox_session",
    "login_failure": "outbox_login_failure",
    "confirmation": "outbox_confirmation",
    "idempotency": "outbox_idempotency",
    "revoked_token": "outbox_revoked_token",
    "group_note": "outbox_group_note",
    "group_mark": "outbox_group_mark",
    "requeue_policy": "outbox_requeue_policy",
    "alert": "outbox_alert",
    "alert_delivery": "outbox_alert_delivery",
}
"""Tables next to an outbox table. Their names do not depend on its name."""
TRANSPORT = ("subscription", "delivery", "dead_letter", "edition", "operation", "operation_item")
"""Tables that the Postgres transport needs."""
ARCHIVE = ("dead_letter", "edition", "operation", "operation_item", "subscription", "component")
"""Tables that an archiver needs."""

_RESERVED = frozenset(SATELLITES.values()) | {VERSION_TABLE, "outbox_history_default"}
_RING_BODY = f"\n{queries('ring_body_3.sql')['body']}\n"
FIRST_RING_BODY = f"\n{queries('ring_body.sql')['body']}\n"
"""Body of the doorbell's trigger function before version 0003."""
_CONTROL_RING_BODY = f"\n{queries('control_ring_body.sql')['body']}\n"

# No suffix may end with an underscore and another suffix: `a` + `_x_idx` and `a_x` + `_idx` would be the same name.
_OUTBOX_OBJECTS = {
    "primary_key": "pkey",
    "check_attempts": "check_attempts",
    "check_priority": "check_priority",
    "check_end": "check_end",
    "check_failure": "check_failure",
    "check_expiration": "check_expiration",
    "check_order": "check_order",
    "pending_index": "pending_idx",
    "held_index": "held_idx",
    "sent_index": "sent_idx",
    "failed_index": "failed_idx",
    "check_requeue_count": "check_requeue_count",
    "due_index": "due_idx",
    "ordered_due_index": "ordered_due_idx",
    "ordered_index": "ordered_idx",
    "blocked_index": "blocked_idx",
    "dedup_index": "dedup_idx",
    "stalled_index": "stalled_idx",
}
_SATELLITE_OBJECTS = {
    "subscription": {"primary_key": "pkey"},
    "delivery": {
        "primary_key": "pkey",
        "check_attempt": "check_attempt",
        "check_crashes": "check_crashes",
        "check_requeue_count": "check_requeue_count",
        "check_lease": "check_lease",
        "index": "due_idx",
        "ordered_index": "ordered_idx",
    },
    "dead_letter": {
        "primary_key": "pkey",
        "check_attempt": "check_attempt",
        "check_requeue_count": "check_requeue_count",
        "check_source": "check_source",
        "check_status": "check_status",
        "index": "queue_idx",
        "identity_index": "identity_idx",
        "message_index": "message_idx",
        "group_index": "group_idx",
        "listing_index": "listing_idx",
        "open_index": "open_idx",
        "search_index": "search_idx",
        "tracking_index": "tracking_idx",
        "key_index": "key_idx",
        "long_key_index": "long_key_idx",
        "exception_index": "exception_idx",
        "failures_index": "failures_idx",
        "requeued_index": "requeued_idx",
        "resolved_index": "resolved_idx",
    },
    "edition": {"primary_key": "pkey", "foreign_key": "fkey"},
    "operation": {
        "primary_key": "pkey",
        "check_action": "check_action",
        "check_state": "check_state",
        "check_end": "check_end",
    },
    "operation_item": {
        "primary_key": "pkey",
        "foreign_key": "fkey",
        "check_outcome": "check_outcome",
        "check_result": "check_result",
        "letter_index": "letter_idx",
        "outcome_index": "outcome_idx",
        "claim_index": "claim_idx",
        "check_index": "check_idx",
        "open_index": "open_idx",
    },
    "inbox": {"primary_key": "pkey", "age_index": "age_idx"},
    "history": {
        "check_fact": "check_fact",
        "message_index": "message_idx",
        "root_index": "root_idx",
        "child_index": "child_idx",
        "recent_index": "recent_idx",
        "keys_index": "keys_idx",
        "queue_index": "queue_idx",
    },
    "stats": {"primary_key": "pkey", "check_seconds": "check_seconds"},
    "component": {"primary_key": "pkey", "check_kind": "check_kind"},
    "control": {"primary_key": "pkey", "check_scope": "check_scope", "check_name": "check_name"},
    "lease": {"primary_key": "pkey"},
    "relay": {"primary_key": "pkey"},
    "audit": {
        "primary_key": "pkey",
        "check_outcome": "check_outcome",
        "age_index": "age_idx",
        "actor_index": "actor_idx",
        "action_index": "action_idx",
        "target_index": "target_idx",
        "outcome_index": "outcome_idx",
    },
    "session": {"primary_key": "pkey", "age_index": "age_idx"},
    "login_failure": {"primary_key": "pkey", "age_index": "age_idx"},
    "confirmation": {"primary_key": "pkey", "age_index": "age_idx"},
    "idempotency": {"primary_key": "pkey", "check_answer": "check_answer", "age_index": "age_idx"},
    "revoked_token": {"primary_key": "pkey"},
    "group_note": {"primary_key": "pkey"},
    "group_mark": {"primary_key": "pkey", "check_status": "check_status"},
    "requeue_policy": {"primary_key": "pkey", "check_per_hour": "check_per_hour"},
    "alert": {"primary_key": "pkey", "check_severity": "check_severity", "open_index": "open_idx", "age_index": "age_idx"},
    "alert_delivery": {
        "primary_key": "pkey",
        "foreign_key": "fkey",
        "check_event": "check_event",
        "alert_index": "alert_idx",
        "due_index": "due_idx",
    },
}


def outbox_table(text: str) -> TableName:
    """Parses the name of an outbox table. Raises `IdentifierError` if it is invalid or reserved."""
    table = TableName.parse(text)
    if table.name in _RESERVED:
        raise IdentifierError(f"{table.name!r} is reserved for another table of Outbox: choose a different name")
    return table


def destination_table(table: TableName, destination: str) -> TableName:
    """Returns the table with the rows for `destination`, which inherits from the outbox table `table`.

    The default destination is `table` itself. Raises `ConfigurationError` or `IdentifierError` for an invalid name.
    """
    if validate_destination(destination) == DEFAULT:
        return table
    return outbox_table(str(TableName(f"{table.name}_{destination}", table.schema)))


@lru_cache(maxsize=64)
def outbox_names(table: TableName) -> Mapping[str, str]:
    """Returns the placeholders of `outbox_table.sql` and `upgrade.sql`: `{x}` is quoted, `{x_name}` is not."""
    return MappingProxyType(
        {
            **table_names(table),
            **_derived_names("", table.name, _OUTBOX_OBJECTS),
            "publish_function": table.sibling(_publish_function(table.name)),
            "publish_function_name": _publish_function(table.name),
            # The predecessor has no column for failed messages.
            "is_predecessors": "not exists (select from pg_attribute where attrelid = target and attname = 'failed_at')",
        }
    )


@lru_cache(maxsize=64)
def satellite_names(schema: str | None) -> Mapping[str, str]:
    """Returns the placeholders of the other tables' files, for `schema`; None: the schema where `create table` creates them."""
    names: dict[str, str] = {
        "history_default": TableName("outbox_history_default", schema).sql,
        "control_ring_body": _CONTROL_RING_BODY,
    }
    for prefix, table in SATELLITES.items():
        own = table_names(TableName(table, schema))
        names |= {prefix: own["table"]} | {
            f"{prefix}_{key}": own[key] for key in ("target", "ring_trigger", "ring_trigger_name", "ring_function")
        }
        names |= _derived_names(f"{prefix}_", table, _SATELLITE_OBJECTS[prefix])
    return MappingProxyType(names)


def table_names(table: TableName) -> dict[str, str]:
    """Returns the placeholders of `ring.sql`, `shape.sql` and `stamps.sql`, for any table."""
    return {
        "table": table.sql,
        "table_alone": quoted(table.name),
        "schema": _schema(table),
        # The existing table in the schema where `create table` would create it; null without one.
        "target": (
            "(select c.oid::regclass from pg_class c join pg_namespace n on n.oid = c.relnamespace "
            f"where n.nspname = {_schema(table)} and c.relname = '{table.name}')"
        ),
        "ring_trigger": quoted(_ring(table.name)),
        "ring_trigger_name": _ring(table.name),
        "ring_function": table.sibling(_ring(table.name)),
        "ring_body": _CONTROL_RING_BODY if table.name == SATELLITES["control"] else _RING_BODY,
    }


def _schema(table: TableName) -> str:
    """Returns the schema where `create table` creates the table, as an SQL expression."""
    return "current_schema()" if table.schema is None else f"'{table.schema}'"


def _publish_function(table: str) -> str:
    """Returns `outbox_publish` for `outbox_table`, and `x_publish` for any other table `x`."""
    # A table named `outbox` must not get the same name, so the two swap.
    bases = {OUTBOX_TABLE: "outbox", "outbox": OUTBOX_TABLE}
    return derived(bases.get(table, table), "publish")


def _ring(table: str) -> str:
    return derived(table, "ring")


def _derived_names(prefix: str, table: str, suffixes: Mapping[str, str]) -> dict[str, str]:
    bare = {f"{prefix}{key}": derived(table, suffix) for key, suffix in suffixes.items()}
    return {key: quoted(name) for key, name in bare.items()} | {f"{key}_name": name for key, name in bare.items()}
