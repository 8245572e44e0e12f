-- name: delivery_columns
alter table {delivery} add column if not exists hlc bigint, add column if not exists failures jsonb

-- name: delivery_ordered_index
-- The deliveries of one ordering key in one queue, in order.
create index if not exists {delivery_ordered_index} on {delivery} (queue, hashtextextended(ordering_key, 0), id)
    where ordering_key is not null

-- name: delivery_shape
('column', 'hlc', 'bigint'),
('column', 'failures', 'jsonb'),
('index', '{delivery_ordered_index_name}', 'valid')
