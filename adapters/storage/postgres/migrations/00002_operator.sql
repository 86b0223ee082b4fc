-- What an operator looks up: refused operations, request IDs, reversals, who
-- administered what, and how subscriptions are used.
--
-- It only adds. A program of version 1 that is running keeps working: every new
-- column has a default, and it writes none of the new tables. Adding the columns
-- takes no time. Building the indexes reads sales, postings and notifications
-- once, and writes to these tables wait for it.
-- +goose Up
ALTER TABLE {{prefix}}subscriptions
    ADD COLUMN require_caller_id    bigint NOT NULL DEFAULT 0,
    ADD COLUMN created_at           timestamptz,
    ADD COLUMN primary_created_at   timestamptz,
    ADD COLUMN secondary_created_at timestamptz,
    ADD COLUMN primary_expires_at   timestamptz,
    ADD COLUMN secondary_expires_at timestamptz,
    ADD COLUMN primary_used_at      timestamptz,
    ADD COLUMN secondary_used_at    timestamptz,
    ADD COLUMN without_caller_id_at timestamptz;

-- Empty if the caller sent no X-Request-Id: the operation's ID serves as one.
ALTER TABLE {{prefix}}sales ADD COLUMN request_id text NOT NULL DEFAULT '';
ALTER TABLE {{prefix}}notifications ADD COLUMN request_id text NOT NULL DEFAULT '';

-- Operations that were refused at once. They have no row of sales. faults has
-- lines of code and pointer.
CREATE TABLE {{prefix}}refusals (
    operation_id       uuid        NOT NULL,
    operation          bigint      NOT NULL,
    subscription       text        NOT NULL,
    app_key            text        NOT NULL DEFAULT '',
    channel            text        NOT NULL DEFAULT '',
    teller_name        text        NOT NULL DEFAULT '',
    caller_id          text        NOT NULL DEFAULT '',
    channel_session_id text        NOT NULL DEFAULT '',
    channel_request_id text        NOT NULL DEFAULT '',
    request_id         text        NOT NULL DEFAULT '',
    state              bigint      NOT NULL,
    faults             text        NOT NULL,
    received_at        timestamptz NOT NULL,
    PRIMARY KEY (operation_id)
);
CREATE INDEX {{prefix}}refusals_request ON {{prefix}}refusals (request_id) WHERE request_id <> '';

-- Completed operations that were reversed, each once. Their postings of kind 4
-- have the ID of the reversal.
CREATE TABLE {{prefix}}reversals (
    operation_id uuid        NOT NULL,
    reversal_id  uuid        NOT NULL,
    reversed_at  timestamptz NOT NULL,
    PRIMARY KEY (operation_id)
);

-- Every act of administration.
CREATE TABLE {{prefix}}audits (
    audit_id    uuid        NOT NULL,
    at          timestamptz NOT NULL,
    actor       text        NOT NULL,
    "system_user" text      NOT NULL, -- without quotes it is a function since version 16
    origin      text        NOT NULL,
    action      text        NOT NULL,
    object      text        NOT NULL DEFAULT '',
    reason      text        NOT NULL DEFAULT '',
    details     text        NOT NULL DEFAULT '',
    PRIMARY KEY (audit_id)
);

-- A customer's rows are a few among millions. A B-tree would double the cost of
-- an insert; these indexes cost almost nothing. The operations' IDs grow with
-- time, so that the smallest and the largest of a range of pages are enough.
-- The filters of all columns of a range share one index row, which must fit into
-- a page: with the usual 128 pages a range, two filters do not.
-- A server that does not know such indexes (Yugabyte) reads the tables.
-- +goose StatementBegin
DO $$
BEGIN
    CREATE INDEX {{prefix}}sales_find ON {{prefix}}sales USING brin
        (customer_no int8_bloom_ops, account_customer_no int8_bloom_ops, request_id text_bloom_ops) WITH (autosummarize = on, pages_per_range = 32);
    CREATE INDEX {{prefix}}postings_find ON {{prefix}}postings USING brin
        (customer_no int8_bloom_ops, posted_at) WITH (autosummarize = on);
    CREATE INDEX {{prefix}}notifications_find ON {{prefix}}notifications USING brin
        (operation_id, push_id text_bloom_ops, request_id text_bloom_ops) WITH (autosummarize = on, pages_per_range = 32);
EXCEPTION WHEN feature_not_supported OR undefined_object OR invalid_parameter_value THEN
    RAISE NOTICE 'this server has no BRIN indexes with bloom filters: lookups of a customer read whole tables';
END $$;
-- +goose StatementEnd

-- +goose Down
DROP INDEX IF EXISTS {{prefix}}notifications_find;
DROP INDEX IF EXISTS {{prefix}}postings_find;
DROP INDEX IF EXISTS {{prefix}}sales_find;
DROP TABLE {{prefix}}audits;
DROP TABLE {{prefix}}reversals;
DROP TABLE {{prefix}}refusals;
ALTER TABLE {{prefix}}notifications DROP COLUMN request_id;
ALTER TABLE {{prefix}}sales DROP COLUMN request_id;
ALTER TABLE {{prefix}}subscriptions
    DROP COLUMN require_caller_id,
    DROP COLUMN created_at,
    DROP COLUMN primary_created_at,
    DROP COLUMN secondary_created_at,
    DROP COLUMN primary_expires_at,
    DROP COLUMN secondary_expires_at,
    DROP COLUMN primary_used_at,
    DROP COLUMN secondary_used_at,
    DROP COLUMN without_caller_id_at;
