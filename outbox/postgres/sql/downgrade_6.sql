-- name: drop_dead_letter_destination
alter table if exists {dead_letter} drop column if exists destination
