-- name: drop_alert_delivery
drop table if exists {alert_delivery}

-- name: drop_alert
drop table if exists {alert}

-- name: drop_group_mark
drop table if exists {group_mark}

-- name: drop_dead_letter_service_version
alter table {dead_letter} drop column if exists service_version

-- name: drop_component_service_version
alter table {component} drop column if exists service_version
