-- The trail: a log of everything that happened, which only grows. The tables of
-- Postgres, one for one.
-- +goose Up

-- The leaves of one commit. position is the batch's place in the log, and NULL
-- until a service has sealed it.
CREATE TABLE {{prefix}}trail_batches (
    batch_id BLOB NOT NULL,
    entries  BLOB NOT NULL,
    seal     BLOB NOT NULL,
    position INTEGER,
    PRIMARY KEY (batch_id)
) STRICT;
CREATE INDEX {{prefix}}trail_batches_open ON {{prefix}}trail_batches (batch_id) WHERE position IS NULL;

-- The hashes of the log's tree, as golang.org/x/mod/sumdb/tlog numbers them.
CREATE TABLE {{prefix}}trail_hashes (
    hash_index INTEGER NOT NULL,
    hash       BLOB NOT NULL,
    PRIMARY KEY (hash_index)
) STRICT;

-- The one state of the log. Sealing locks its row. begun is 1 when the rows
-- from before the trail have their leaves.
CREATE TABLE {{prefix}}trail_logs (
    log_id     INTEGER NOT NULL CHECK (log_id = 1),
    size       INTEGER NOT NULL,
    checkpoint TEXT NOT NULL DEFAULT '',
    begun      INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (log_id)
) STRICT;
INSERT INTO {{prefix}}trail_logs (log_id, size) VALUES (1, 0);

-- +goose Down
DROP TABLE {{prefix}}trail_logs;
DROP TABLE {{prefix}}trail_hashes;
DROP TABLE {{prefix}}trail_batches;
