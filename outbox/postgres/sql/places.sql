Where claims begin to read a class of the index of due rows.

-- name: from_floors
-- {floors}: the times to begin at, of the priorities from 0 on, and of rows with ordering keys.
send_after >= to_timestamp(({floors}::float8[])[class.priority + 1])

-- name: from_bookmarks
-- {dues} and {ids}: the rows to begin behind, of the priorities from 0 on.
(send_after, id) > (to_timestamp(({dues}::float8[])[class.priority + 1]), ({ids}::bigint[])[class.priority + 1])
