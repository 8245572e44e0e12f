Notes about groups of dead letters.

-- name: notes
select group_id, note as text, noted_by, noted_at
from {group_note}
where by = $1 and group_id = any($2::text[])

-- name: lock_note
select note as text, noted_by, noted_at
from {group_note}
where by = $1 and group_id = $2
for update

-- name: set_note
-- $5: also if there is a note.
insert into {group_note} (by, group_id, note, noted_by)
values ($1, $2, $3, $4)
on conflict (by, group_id) do update
set note = excluded.note, noted_by = excluded.noted_by, noted_at = clock_timestamp()
where $5::boolean

-- name: clear_note
delete from {group_note}
where by = $1 and group_id = $2
