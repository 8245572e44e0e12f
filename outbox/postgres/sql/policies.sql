Policies that requeue the dead letters of a group automatically.

-- name: policies
-- Every policy, with its latest operation.
select policy.group_id, policy.per_hour, policy.set_by, policy.set_at, policy.operation_id, policy.started_at, policy.stopped_at,
    policy.stopped_because
from {requeue_policy} as policy
order by policy.group_id

-- name: set_policy
insert into {requeue_policy} (group_id, per_hour, set_by)
values ($1, $2, $3)
on conflict (group_id) do update
set per_hour = excluded.per_hour, set_by = excluded.set_by, set_at = excluded.set_at, stopped_at = null, stopped_because = null,
    operation_id = null

-- name: clear_policy
delete from {requeue_policy}
where group_id = $1

-- name: active_policies
-- Policies that are not stopped, with the state of their latest operation, which may have been pruned. A policy is due after an hour.
-- If all letters of a finished operation were refused, the next one would get the same letters: `refused_because` is why.
select policy.group_id, policy.per_hour, policy.set_by, policy.operation_id, operation.state, operation.failed,
    operation.stopped_because as operation_stopped_because,
    (
        select max(detail)
        from {operation_item}
        where operation_id = operation.id
        having operation.state = 'finished' and bool_and(outcome = 'refused')
    ) as refused_because,
    (operation.id is null or operation.finished_at is not null)
        and coalesce(policy.started_at <= clock_timestamp() - interval '1 hour', true) as is_due
from {requeue_policy} as policy
left join {operation} as operation on operation.id = policy.operation_id
where policy.stopped_at is null
order by policy.group_id

-- name: take
-- Whether the policy may start an operation. Until the transaction ends, no other process may.
select true
from {requeue_policy}
where group_id = $1 and stopped_at is null and coalesce(started_at <= clock_timestamp() - interval '1 hour', true)
for update

-- name: started
update {requeue_policy}
set operation_id = $2, started_at = clock_timestamp()
where group_id = $1

-- name: stop
update {requeue_policy}
set stopped_at = clock_timestamp(), stopped_because = $2
where group_id = $1 and stopped_at is null
