-- name: hold
-- Takes the lease of a duty if no process holds it, or extends it if this one does. Uses the clock of the database.
insert into {lease} as lease (duty, holder, token, held_until)
values ($1, $2, $3, clock_timestamp() + $4::interval)
on conflict (duty) do update
set holder = excluded.holder, token = excluded.token, held_until = excluded.held_until
where lease.held_until < clock_timestamp() or lease.token = excluded.token
returning true

-- name: release
delete from {lease}
where duty = $1 and token = $2

-- name: holder
select holder
from {lease}
where duty = $1 and held_until >= clock_timestamp()
