-- The log of requests: the errors and repeats of the last days, of all replicas. It is no
-- part of the book or the trail. It only adds: a program of an earlier version that is
-- running keeps working, and keeps no requests.
-- +goose Up
CREATE TABLE {{prefix}}requests (
    entry_id     BLOB    NOT NULL,
    at           TEXT    NOT NULL,
    microseconds INTEGER NOT NULL,
    method       TEXT    NOT NULL,
    route        TEXT    NOT NULL DEFAULT '',
    operation    TEXT    NOT NULL DEFAULT '',
    status       INTEGER NOT NULL,
    state        INTEGER NOT NULL DEFAULT 0,
    replayed     INTEGER NOT NULL DEFAULT 0,
    codes        TEXT    NOT NULL DEFAULT '',
    subscription TEXT    NOT NULL DEFAULT '',
    caller_id    TEXT    NOT NULL DEFAULT '',
    request_id   TEXT    NOT NULL DEFAULT '',
    operation_id TEXT    NOT NULL DEFAULT '',
    omitted      INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (entry_id)
) STRICT;
CREATE INDEX {{prefix}}requests_request ON {{prefix}}requests (request_id);
CREATE INDEX {{prefix}}requests_caller ON {{prefix}}requests (caller_id);
CREATE INDEX {{prefix}}requests_subscription ON {{prefix}}requests (subscription, entry_id);

-- +goose Down
DROP TABLE {{prefix}}requests;
