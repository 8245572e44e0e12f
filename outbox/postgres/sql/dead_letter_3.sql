-- name: dead_letter_shown_message
-- `shown_message` is `exception_message` without what the message itself says is secret, for lists, which do not read bodies. Null:
-- recorded before version 0003.
alter table {dead_letter} add column if not exists shown_message text

-- name: dead_letter_shape
('column', 'shown_message', 'text')
