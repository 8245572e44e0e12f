-- name: dead_letter_shown_message
-- `shown_message`: `exception_message` without secrets that the message itself contains, for lists, which do not read bodies. Null if it
-- was recorded before version 0003.
alter table {dead_letter} add column if not exists shown_message text

-- name: dead_letter_shape
('column', 'shown_message', 'text')
