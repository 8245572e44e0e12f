-- name: dead_letter_destination
-- The destination of a message that its relay had parked before it was discarded or edited. Null for the default one, and for messages
-- that failed in a queue.
alter table {dead_letter} add column if not exists destination text

-- name: dead_letter_shape
('column', 'destination', 'text')
