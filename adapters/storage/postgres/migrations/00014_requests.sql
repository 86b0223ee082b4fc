-- The log of requests: the errors and repeats of the last days, of all replicas. It is no
-- part of the book or the trail. It only adds: a program of an earlier version that is
-- running keeps working, and keeps no requests.
-- +goose Up
CREATE TABLE {{prefix}}requests (
    entry_id     uuid        NOT NULL,
    at           timestamptz NOT NULL,
    microseconds bigint      NOT NULL,
    method       text        NOT NULL,
    route        text        NOT NULL DEFAULT '',
    operation    text        NOT NULL DEFAULT '',
    status       bigint      NOT NULL,
    state        bigint      NOT NULL DEFAULT 0,
    replayed     bigint      NOT NULL DEFAULT 0,
    codes        text        NOT NULL DEFAULT '',
    subscription text        NOT NULL DEFAULT '',
    caller_id    text        NOT NULL DEFAULT '',
    request_id   text        NOT NULL DEFAULT '',
    operation_id text        NOT NULL DEFAULT '',
    omitted      bigint      NOT NULL DEFAULT 0,
    PRIMARY KEY (entry_id)
);
CREATE INDEX {{prefix}}requests_request ON {{prefix}}requests (request_id);
CREATE INDEX {{prefix}}requests_caller ON {{prefix}}requests (caller_id);
CREATE INDEX {{prefix}}requests_subscription ON {{prefix}}requests (subscription, entry_id);

-- +goose Down
DROP TABLE {{prefix}}requests;
