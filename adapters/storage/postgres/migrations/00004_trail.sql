-- The trail: a log of everything that happened, which only grows.
--
-- It only adds. A program of an earlier version that is running keeps working,
-- but what it writes has no leaves: switch trail.enabled on when it has ended.
-- +goose Up

-- The leaves of one commit. position is the batch's place in the log, and NULL
-- until a service has sealed it. Hashes do not compress.
CREATE TABLE {{prefix}}trail_batches (
    batch_id uuid   NOT NULL,
    entries  bytea  NOT NULL,
    seal     bytea  NOT NULL,
    position bigint,
    PRIMARY KEY (batch_id)
);
ALTER TABLE {{prefix}}trail_batches ALTER COLUMN entries SET STORAGE EXTERNAL;
CREATE INDEX {{prefix}}trail_batches_open ON {{prefix}}trail_batches (batch_id) WHERE position IS NULL;

-- The hashes of the log's tree, as golang.org/x/mod/sumdb/tlog numbers them.
CREATE TABLE {{prefix}}trail_hashes (
    hash_index bigint NOT NULL,
    hash       bytea  NOT NULL,
    PRIMARY KEY (hash_index)
);

-- The one state of the log. Sealing locks its row. begun is 1 when the rows
-- from before the trail have their leaves.
CREATE TABLE {{prefix}}trail_logs (
    log_id     bigint NOT NULL CHECK (log_id = 1),
    size       bigint NOT NULL,
    checkpoint text   NOT NULL DEFAULT '',
    begun      bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (log_id)
);
INSERT INTO {{prefix}}trail_logs (log_id, size) VALUES (1, 0);

-- +goose Down
DROP TABLE {{prefix}}trail_logs;
DROP TABLE {{prefix}}trail_hashes;
DROP TABLE {{prefix}}trail_batches;
