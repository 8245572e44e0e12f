"""Write the Grafana dashboard, monitoring/grafana/outbox.json, from the panels that are listed here.

python scripts/grafana.py            # writes the file
python scripts/grafana.py --check    # says whether the file is what this script would write
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parent.parent / "monitoring" / "grafana" / "outbox.json"
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
WIDTH = 24
"""Columns of Grafana's grid."""
GREEN, AMBER, RED = "green", "orange", "red"
Thresholds = tuple[tuple[float | None, str], ...]


@dataclass(frozen=True)
class Query:
    """An expression, and how its series are called."""

    expression: str
    legend: str = ""


@dataclass(frozen=True)
class Panel:
    """A chart over time; with `stat`, the latest value as a number. `thresholds` colour values from each one on."""

    title: str
    queries: Sequence[Query]
    description: str
    unit: str = "short"
    width: int = 8
    stat: bool = False
    stacked: bool = False
    thresholds: Thresholds = ((None, GREEN),)
    mappings: Sequence[tuple[str, str, str]] = ()


@dataclass(frozen=True)
class Row:
    """Panels under one heading."""

    title: str
    panels: Sequence[Panel]


# During a rollout two functions may have handled a queue: one of them stands for it, because a join takes one partner only.
_HANDLERS = "on (queue) group_left (handler) topk by (queue) (1, max by (queue, handler) (outbox_handler_info))"
_LATE: Thresholds = ((None, GREEN), (60, AMBER), (300, RED))


def _per_second(metric: str, by: str) -> str:
    return f"sum by ({by}) (rate({metric}[$__rate_interval]))"


def _quantiles(metric: str) -> list[Query]:
    return [
        Query(f"histogram_quantile({share / 100:g}, {_per_second(f'{metric}_bucket', 'le')})", f"p{share}")
        for share in (50, 95, 99)
    ]


def _by_handler(labels: str, metric: str, *matchers: str) -> str:
    chosen = ", ".join(('queue=~"$queue"', *matchers))
    return f"sum by ({labels}) (rate({metric}{{{chosen}}}[$__rate_interval]) * {_HANDLERS})"


ROWS = (
    Row(
        "Now",
        (
            Panel(
                "Verdict",
                [Query("max(outbox_health_verdict)")],
                "The same verdict as in Outbox's dashboard and `outbox status`.",
                width=4,
                stat=True,
                thresholds=((None, GREEN), (1, AMBER), (2, RED)),
                mappings=(("0", "OK", GREEN), ("1", "Warning", AMBER), ("2", "Error", RED)),
            ),
            Panel(
                "Oldest due message",
                [Query("max(outbox_oldest_unsent_age_seconds)")],
                "How long the oldest unsent message has been due. Scheduled messages are not due yet.",
                unit="s",
                width=4,
                stat=True,
                thresholds=_LATE,
            ),
            Panel(
                "Backlog",
                [Query("sum(max by (exchange_name) (outbox_table_backlog))")],
                "Unsent messages, scheduled and held ones included.",
                width=4,
                stat=True,
            ),
            Panel(
                "Open dead letters",
                [Query("sum(max by (queue) (outbox_dlq_messages))")],
                "At the broker and in the database. Parked messages are not included.",
                width=4,
                stat=True,
                thresholds=((None, GREEN), (1, AMBER)),
            ),
            Panel(
                "Relays",
                [Query('sum(max by (status) (outbox_components{kind="relay", status=~"alive|late"}))')],
                "Relays with heartbeats.",
                width=4,
                stat=True,
                thresholds=((None, RED), (1, GREEN)),
            ),
            Panel(
                "Workers",
                [Query('sum(max by (status) (outbox_components{kind="worker", status=~"alive|late"}))')],
                "Workers with heartbeats.",
                width=4,
                stat=True,
                thresholds=((None, RED), (1, GREEN)),
            ),
        ),
    ),
    Row(
        "Outbox",
        (
            Panel(
                "In and out",
                [
                    Query(
                        "clamp_min(sum(rate(outbox_messages_published_total[$__rate_interval])) "
                        "+ sum(max by (exchange_name) (deriv(outbox_table_backlog[$__rate_interval]))), 0)",
                        "in: what was sent, and what the backlog grew by",
                    ),
                    Query("sum(rate(outbox_messages_published_total[$__rate_interval]))", "out"),
                ],
                "Messages a second. If more comes in than goes out, the backlog grows.",
                unit="cps",
            ),
            Panel(
                "Oldest due message",
                [Query("max by (exchange_name) (outbox_oldest_unsent_age_seconds)", "{{exchange_name}}")],
                "How long the oldest unsent message has been due.",
                unit="s",
                thresholds=_LATE,
            ),
            Panel(
                "Time in the outbox",
                _quantiles("outbox_message_age_seconds"),
                "From when a message was due to the commit after the broker's confirm.",
                unit="s",
            ),
            Panel(
                "Late share",
                [Query(f"outbox:late_share:rate{window}", f"{{{{exchange_name}}}}, {window}") for window in ("5m", "1h", "6h")],
                "Messages that were sent more than 5 s after they were due. The series are rules of monitoring/alerts.yml.",
                unit="percentunit",
            ),
            Panel(
                "Unsent messages by state",
                [Query("max by (state) (outbox_table_messages)", "{{state}}")],
                "Held: no queue is bound. Stalled: a queue takes nothing. Parked: publishing failed for good.",
                stacked=True,
            ),
            Panel(
                "Publish failures",
                [
                    Query(
                        _per_second("outbox_publish_failures_total", "failure_type, error_type"),
                        "{{failure_type}} {{error_type}}",
                    )
                ],
                "Failed attempts a second.",
                unit="cps",
            ),
        ),
    ),
    Row(
        "Destinations",
        (
            Panel(
                "Unsent messages by destination",
                [Query("max by (destination) (outbox_destination_messages)", "{{destination}}")],
                "Scheduled and held ones included. Empty if there is only the default destination.",
                width=12,
            ),
            Panel(
                "Oldest due message by destination",
                [Query("max by (destination) (outbox_destination_oldest_age_seconds)", "{{destination}}")],
                "How long the first message has been due. It grows while the destination has no relay, or its broker is away.",
                unit="s",
                width=12,
                thresholds=_LATE,
            ),
        ),
    ),
    Row(
        "Queues",
        (
            Panel(
                "Messages that wait",
                [Query('max by (queue) (outbox_queue_messages{queue=~"$queue"})', "{{queue}}")],
                "For a worker; messages in flight and those that are retried later are not included.",
            ),
            Panel(
                "Oldest waiting message",
                [Query('max by (queue) (outbox_queue_oldest_age_seconds{queue=~"$queue"})', "{{queue}}")],
                "How long the first message has been due. On RabbitMQ this is a lower bound.",
                unit="s",
                thresholds=_LATE,
            ),
            Panel(
                "Consumers",
                [Query('sum by (queue) (outbox_active_consumers{queue=~"$queue"})', "{{queue}}")],
                "0 while a queue is paused, or no worker consumes it.",
            ),
        ),
    ),
    Row(
        "Handlers",
        (
            Panel(
                "Handled",
                [Query(_by_handler("handler", "outbox_messages_processed_total", 'status="success"'), "{{handler}}")],
                "Messages a second.",
                unit="cps",
            ),
            Panel(
                "Failed",
                [
                    Query(
                        _by_handler("handler, status", "outbox_messages_processed_total", 'status!="success"'),
                        "{{handler}}: {{status}}",
                    )
                ],
                "Attempts a second, retried or dead-lettered.",
                unit="cps",
            ),
            Panel(
                "Retry share",
                [
                    Query(
                        'sum by (queue) (rate(outbox_retry_attempts_total{queue=~"$queue"}[$__rate_interval])) '
                        '/ sum by (queue) (rate(outbox_messages_processed_total{queue=~"$queue"}[$__rate_interval]))',
                        "{{queue}}",
                    )
                ],
                "Attempts that failed and are retried, of all.",
                unit="percentunit",
            ),
            *(
                Panel(
                    f"Duration, p{share}",
                    [
                        Query(
                            f"histogram_quantile({share / 100:g}, "
                            f"{_by_handler('le, handler', 'outbox_message_processing_duration_seconds_bucket')})",
                            "{{handler}}",
                        )
                    ],
                    "Handler time.",
                    unit="s",
                )
                for share in (50, 95, 99)
            ),
        ),
    ),
    Row(
        "Dead letters",
        (
            Panel(
                "New, by cause",
                [Query(_per_second("outbox_dead_letters_total", "cause"), "{{cause}}")],
                "A second, as workers and relays dead-letter them. What the broker dead-letters by itself is not included.",
                unit="cps",
                width=12,
                stacked=True,
            ),
            Panel(
                "Open, by queue",
                [Query('max by (queue) (outbox_dlq_messages{queue=~"$queue"})', "{{queue}}")],
                "At the broker and in the database.",
                width=12,
            ),
        ),
    ),
    Row(
        "Relays and workers",
        (
            Panel(
                "Components",
                [Query('max by (kind, status) (outbox_components{status=~"alive|late|lost"})', "{{kind}}: {{status}}")],
                "By their heartbeats.",
            ),
            Panel(
                "Findings",
                [Query("max by (code) (outbox_health_findings) > 0", "{{code}}")],
                "What needs attention. Empty if the verdict is OK.",
            ),
            Panel(
                "Polling",
                [Query('max by (channel) (outbox_wake_mode{mode="polling"})', "{{channel}}")],
                "1 while LISTEN does not deliver, and new rows are found by polling.",
            ),
        ),
    ),
    Row(
        "PostgreSQL",
        (
            Panel(
                "Oldest transaction",
                [Query("max(outbox_oldest_transaction_age_seconds)", "age")],
                "It keeps vacuum from removing dead rows, and claims read past them.",
                unit="s",
                width=6,
                thresholds=((None, GREEN), (600, RED)),
            ),
            Panel(
                "Dead rows",
                [Query("max by (table) (outbox_dead_rows)", "{{table}}")],
                "What vacuum has not removed yet.",
                width=6,
            ),
            Panel(
                "Claim, send, settle",
                _quantiles("outbox_poll_duration_seconds"),
                "How long one round of a relay takes.",
                unit="s",
                width=6,
            ),
            Panel(
                "Lost history entries",
                [Query("sum(rate(outbox_history_lost_total[$__rate_interval]))", "entries")],
                "A second. Messages are not affected.",
                unit="cps",
                width=6,
            ),
        ),
    ),
)


def dashboard() -> dict[str, Any]:
    """The dashboard as Grafana imports it."""
    return {
        "uid": "outbox",
        "title": "Outbox",
        "description": "Written by scripts/grafana.py",
        "tags": ["outbox"],
        "schemaVersion": 39,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "timezone": "",
        "templating": {"list": _variables()},
        "annotations": {"list": [_alerts()]},
        "links": [],
        "panels": _panels(),
    }


def _variables() -> list[dict[str, Any]]:
    queues = "label_values(outbox_queue_messages, queue)"
    return [
        {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"},
        {
            "name": "queue",
            "label": "Queue",
            "type": "query",
            "datasource": SOURCE,
            "definition": queues,
            "query": {"query": queues, "refId": "queues"},
            "refresh": 2,
            "sort": 1,
            "multi": True,
            "includeAll": True,
            "allValue": ".*",
            "current": {"text": ["All"], "value": ["$__all"]},
        },
    ]


def _alerts() -> dict[str, Any]:
    return {
        "name": "Alerts",
        "datasource": SOURCE,
        "enable": True,
        "iconColor": RED,
        "expr": 'ALERTS{alertname=~"Outbox.*", alertstate="firing"}',
        "titleFormat": "{{alertname}}",
        "textFormat": "{{queue}} {{exchange_name}} {{destination}}",
        "step": "60s",
    }


def _panels() -> list[dict[str, Any]]:
    panels: list[dict[str, Any]] = []
    x = y = height = 0
    for row in ROWS:
        x, y = 0, y + height
        panels.append(
            _with_position({"type": "row", "title": row.title, "collapsed": False, "panels": []}, panels, 0, y, WIDTH, 1)
        )
        y += 1
        for panel in row.panels:
            if x + panel.width > WIDTH:
                x, y = 0, y + height
            height = 4 if panel.stat else 8
            panels.append(_with_position(_panel(panel), panels, x, y, panel.width, height))
            x += panel.width
    return panels


def _with_position(panel: dict[str, Any], before: Sequence[object], x: int, y: int, width: int, height: int) -> dict[str, Any]:
    return {"id": len(before) + 1, "gridPos": {"x": x, "y": y, "w": width, "h": height}, **panel}


def _panel(panel: Panel) -> dict[str, Any]:
    shown = {"type": "stat", "options": _stat_options()} if panel.stat else {"type": "timeseries", "options": _chart_options()}
    custom = {} if panel.stat else _chart_style(panel)
    return {
        "title": panel.title,
        "description": panel.description,
        "datasource": SOURCE,
        **shown,
        "fieldConfig": {
            "defaults": {
                "unit": panel.unit,
                "min": 0,
                "thresholds": {
                    "mode": "absolute",
                    "steps": [{"value": value, "color": colour} for value, colour in panel.thresholds],
                },
                "mappings": [
                    {"type": "value", "options": {value: {"text": text, "color": colour}}}
                    for value, text, colour in panel.mappings
                ],
                "custom": custom,
            },
            "overrides": [],
        },
        "targets": [
            {
                "refId": chr(ord("A") + number),
                "datasource": SOURCE,
                "expr": query.expression,
                "legendFormat": query.legend or "__auto",
                "range": True,
            }
            for number, query in enumerate(panel.queries)
        ],
    }


def _stat_options() -> dict[str, Any]:
    return {
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "colorMode": "background",
        "graphMode": "area",
    }


def _chart_options() -> dict[str, Any]:
    return {
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }


def _chart_style(panel: Panel) -> dict[str, Any]:
    lines = "dashed" if len(panel.thresholds) > 1 else "off"
    return {
        "drawStyle": "line",
        "fillOpacity": 30 if panel.stacked else 5,
        "lineWidth": 1,
        "showPoints": "never",
        "stacking": {"mode": "normal" if panel.stacked else "none", "group": "A"},
        "thresholdsStyle": {"mode": lines},
    }


def text() -> str:
    """What the file has in it."""
    return json.dumps(dashboard(), indent=2) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Write the file, or check it; the exit status."""
    if "--check" not in arguments:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(text())
        return 0
    if PAGE.read_text() == text():
        return 0
    print(f"{PAGE.name} is not what scripts/grafana.py writes: run it")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
