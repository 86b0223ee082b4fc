-- What an operator looks up, one for one as on Postgres, except for the indexes.
-- It only adds: a program of version 1 that is running keeps working.
-- +goose Up
ALTER TABLE {{prefix}}subscriptions ADD COLUMN require_caller_id INTEGER NOT NULL DEFAULT 0;
ALTER TABLE {{prefix}}subscriptions ADD COLUMN created_at TEXT;
ALTER TABLE {{prefix}}subscriptions ADD COLUMN primary_created_at TEXT;
ALTER TABLE {{prefix}}subscriptions ADD COLUMN secondary_created_at TEXT;
ALTER TABLE {{prefix}}subscriptions ADD COLUMN primary_expires_at TEXT;
ALTER TABLE {{prefix}}subscriptions ADD COLUMN secondary_expires_at TEXT;
ALTER TABLE {{prefix}}subscriptions ADD COLUMN primary_used_at TEXT;
ALTER TABLE {{prefix}}subscriptions ADD COLUMN secondary_used_at TEXT;
ALTER TABLE {{prefix}}subscriptions ADD COLUMN without_caller_id_at TEXT;

ALTER TABLE {{prefix}}sales ADD COLUMN request_id TEXT NOT NULL DEFAULT '';
ALTER TABLE {{prefix}}notifications ADD COLUMN request_id TEXT NOT NULL DEFAULT '';

CREATE TABLE {{prefix}}refusals (
    operation_id       BLOB NOT NULL,
    operation          INTEGER NOT NULL,
    subscription       TEXT NOT NULL,
    app_key            TEXT NOT NULL DEFAULT '',
    channel            TEXT NOT NULL DEFAULT '',
    teller_name        TEXT NOT NULL DEFAULT '',
    caller_id          TEXT NOT NULL DEFAULT '',
    channel_session_id TEXT NOT NULL DEFAULT '',
    channel_request_id TEXT NOT NULL DEFAULT '',
    request_id         TEXT NOT NULL DEFAULT '',
    state              INTEGER NOT NULL,
    faults             TEXT NOT NULL,
    received_at        TEXT NOT NULL,
    PRIMARY KEY (operation_id)
) STRICT;
CREATE INDEX {{prefix}}refusals_request ON {{prefix}}refusals (request_id) WHERE request_id <> '';

CREATE TABLE {{prefix}}reversals (
    operation_id BLOB NOT NULL,
    reversal_id  BLOB NOT NULL,
    reversed_at  TEXT NOT NULL,
    PRIMARY KEY (operation_id)
) STRICT;

CREATE TABLE {{prefix}}audits (
    audit_id    BLOB NOT NULL,
    at          TEXT NOT NULL,
    actor       TEXT NOT NULL,
    system_user TEXT NOT NULL,
    origin      TEXT NOT NULL,
    action      TEXT NOT NULL,
    object      TEXT NOT NULL DEFAULT '',
    reason      TEXT NOT NULL DEFAULT '',
    details     TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (audit_id)
) STRICT;

-- +goose Down
DROP TABLE {{prefix}}audits;
DROP TABLE {{prefix}}reversals;
DROP TABLE {{prefix}}refusals;
ALTER TABLE {{prefix}}notifications DROP COLUMN request_id;
ALTER TABLE {{prefix}}sales DROP COLUMN request_id;
ALTER TABLE {{prefix}}subscriptions DROP COLUMN without_caller_id_at;
ALTER TABLE {{prefix}}subscriptions DROP COLUMN secondary_used_at;
ALTER TABLE {{prefix}}subscriptions DROP COLUMN primary_used_at;
ALTER TABLE {{prefix}}subscriptions DROP COLUMN secondary_expires_at;
ALTER TABLE {{prefix}}subscriptions DROP COLUMN primary_expires_at;
ALTER TABLE {{prefix}}subscriptions DROP COLUMN secondary_created_at;
ALTER TABLE {{prefix}}subscriptions DROP COLUMN primary_created_at;
ALTER TABLE {{prefix}}subscriptions DROP COLUMN created_at;
ALTER TABLE {{prefix}}subscriptions DROP COLUMN require_caller_id;
