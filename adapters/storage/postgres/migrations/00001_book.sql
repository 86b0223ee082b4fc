-- The book of version 1.
--
-- Each primary key begins with, or is, the column by which the table can be distributed. Wide
-- columns come first, so that rows have no padding.
-- Tables that only grow have keys that begin with an ID. IDs grow with time, so new rows
-- change the last pages of a table and of its index only.
--
-- Quantities are scaled integers: units 10^-6, prices 10^-8, money in minor units of its
-- currency. Texts in keys compare by byte (COLLATE "C"): this is fast, it is the order of
-- SQLite and of Go, and it does not change with the locales of the system.
-- +goose Up
-- +goose StatementBegin

-- What is true of the book as a whole:
--
--   messages_key                         the key of the identities of messages
--   messages_erased_before               the day before which all messages were erased
--   rules                                the rules of the bank, and its time zone
--   calendar                             a line for each closed day: the day, and the reason
--   outcomes                             the largest number in outcomes
--   log_size, log_checkpoint, log_begun  the state of the log of the trail
--   mark, mark_note                      of a database that is not the book of a bank
CREATE TABLE {{prefix}}properties (
    name  text COLLATE "C" NOT NULL,
    value text NOT NULL,
    PRIMARY KEY (name)
);

INSERT INTO {{prefix}}properties (name, value)
VALUES ('calendar', ''), ('outcomes', '0'), ('log_size', '0'), ('log_checkpoint', ''), ('log_begun', '0');

CREATE TABLE {{prefix}}subscriptions (
    name                 text COLLATE "C" NOT NULL,
    state                text        NOT NULL,
    operations           text        NOT NULL,
    requests_per_second  bigint      NOT NULL,
    app_key              text        NOT NULL,
    channel              text        NOT NULL,
    teller_name          text        NOT NULL,
    primary_hash         bytea       NOT NULL,
    secondary_hash       bytea       NOT NULL,
    require_caller_id    bigint      NOT NULL DEFAULT 0,
    created_at           timestamptz,
    primary_created_at   timestamptz,
    secondary_created_at timestamptz,
    primary_expires_at   timestamptz,
    secondary_expires_at timestamptz,
    primary_used_at      timestamptz,
    secondary_used_at    timestamptz,
    without_caller_id_at timestamptz,
    client_certificate   text        NOT NULL DEFAULT '',
    PRIMARY KEY (name)
);

CREATE TABLE {{prefix}}prices (
    price_id                bigint NOT NULL,
    imkb_code               text COLLATE "C" NOT NULL,
    holder_corporation_name text COLLATE "C" NOT NULL,
    price                   bigint NOT NULL CHECK (price > 0),
    currency_code           text   NOT NULL,
    valid_from              date   NOT NULL,
    act_id                  uuid, -- of the import, in audits; NULL if it has none
    PRIMARY KEY (price_id)
);
CREATE INDEX {{prefix}}prices_current ON {{prefix}}prices (imkb_code, holder_corporation_name, valid_from, price_id);

-- Room in every page lets a changed quantity stay in its page, and changes no index.
-- Imports leave more room for themselves.
CREATE TABLE {{prefix}}holdings (
    customer_no             bigint NOT NULL,
    imkb_code               text COLLATE "C" NOT NULL,
    holder_corporation_name text COLLATE "C" NOT NULL,
    units                   bigint NOT NULL CHECK (units >= 0),
    PRIMARY KEY (customer_no, imkb_code, holder_corporation_name)
) WITH (fillfactor = 90);

CREATE TABLE {{prefix}}accounts (
    customer_no    bigint NOT NULL,
    branch_code    bigint NOT NULL,
    account_suffix bigint NOT NULL,
    currency_code  text COLLATE "C" NOT NULL,
    balance        bigint NOT NULL CHECK (balance >= 0),
    PRIMARY KEY (customer_no, branch_code, account_suffix, currency_code)
) WITH (fillfactor = 90);

-- Every operation that was answered: one row, whatever becomes of it. A message may have been
-- stored by an earlier operation; the operation that sent it again is here too.
--
-- identity is a hash of operation, subscription and CallerId, or operation_id without a
-- CallerId. due_on is the day for which the operation was recorded. ended_at is when its sales
-- were carried out or failed on their day. reversal_id and reversed_at name the act that
-- reversed it. faults has lines of code and pointer. session_hash replaces channel_session_id
-- after personal data was erased. request_id is empty if the caller sent no X-Request-Id.
CREATE TABLE {{prefix}}operations (
    received_at        timestamptz NOT NULL,
    ended_at           timestamptz,
    reversed_at        timestamptz,
    due_on             date,
    operation          smallint NOT NULL,
    state              smallint NOT NULL,
    identity           uuid   NOT NULL,
    operation_id       uuid   NOT NULL,
    reversal_id        uuid,
    fingerprint        bytea  NOT NULL DEFAULT '',
    session_hash       bytea  NOT NULL DEFAULT '',
    subscription       text COLLATE "C" NOT NULL,
    app_key            text   NOT NULL DEFAULT '',
    channel            text   NOT NULL DEFAULT '',
    teller_name        text   NOT NULL DEFAULT '',
    caller_id          text   NOT NULL DEFAULT '',
    channel_session_id text   NOT NULL DEFAULT '',
    channel_request_id text   NOT NULL DEFAULT '',
    request_id         text   NOT NULL DEFAULT '',
    faults             text   NOT NULL DEFAULT '',
    PRIMARY KEY (operation_id)
);
CREATE UNIQUE INDEX {{prefix}}operations_identity ON {{prefix}}operations (identity) WHERE caller_id <> '';
-- Operations that wait for their day, or for a price. Other operations never change this index.
CREATE INDEX {{prefix}}operations_due ON {{prefix}}operations (due_on, operation_id) WHERE state = 1;
CREATE INDEX {{prefix}}operations_failed ON {{prefix}}operations (operation_id) WHERE state = 8;
-- Operations by the time at which they ended on their day.
CREATE INDEX {{prefix}}operations_ended ON {{prefix}}operations (ended_at) WHERE due_on IS NOT NULL;
CREATE INDEX {{prefix}}operations_reversal ON {{prefix}}operations (reversal_id) WHERE reversal_id IS NOT NULL;

-- The sales of operations in their order, also those that a refused operation asked for. When
-- a sale was settled stands in operations: ended_at. Pages keep room, so that most due sales
-- stay in their page when they are settled.
CREATE TABLE {{prefix}}sales (
    customer_no             bigint   NOT NULL,
    price_id                bigint   NOT NULL,
    units                   bigint   NOT NULL CHECK (units > 0),
    account_customer_no     bigint   NOT NULL,
    branch_code             bigint   NOT NULL,
    account_suffix          bigint   NOT NULL,
    control_total           bigint,
    settled_price_id        bigint,
    settled_price           bigint,
    proceeds                bigint,
    selected_date           date,
    position                integer  NOT NULL,
    state                   smallint NOT NULL,
    operation_id            uuid     NOT NULL,
    currency_code           text     NOT NULL,
    imkb_code               text     NOT NULL,
    holder_corporation_name text     NOT NULL,
    refusal                 text     NOT NULL DEFAULT '',
    PRIMARY KEY (operation_id, position)
) WITH (fillfactor = 95);
-- Sales that wait for the price of their fund. Other sales never change this index.
CREATE INDEX {{prefix}}sales_waiting ON {{prefix}}sales (selected_date, imkb_code, holder_corporation_name, operation_id) WHERE state = 1;
-- Sales that failed: few among many that completed.
CREATE INDEX {{prefix}}sales_failed ON {{prefix}}sales (operation_id, position) WHERE state = 8;
-- Sales whose proceeds went to the account of another customer.
CREATE INDEX {{prefix}}sales_account ON {{prefix}}sales (account_customer_no) WHERE account_customer_no <> customer_no;

-- What imports and corrections added to holdings (leg 1) and accounts (leg 2), in balance with
-- the bank's counter-position. kind is 2 for the first import of a position, and 3 for a change.
-- act_id is the act in audits, line the line of the file.
CREATE TABLE {{prefix}}adjustments (
    customer_no             bigint      NOT NULL,
    branch_code             bigint      NOT NULL DEFAULT 0,
    account_suffix          bigint      NOT NULL DEFAULT 0,
    quantity                bigint      NOT NULL,
    posted_at               timestamptz NOT NULL,
    line                    integer     NOT NULL,
    leg                     smallint    NOT NULL,
    kind                    smallint    NOT NULL,
    act_id                  uuid        NOT NULL,
    imkb_code               text        NOT NULL DEFAULT '',
    holder_corporation_name text        NOT NULL DEFAULT '',
    currency_code           text        NOT NULL DEFAULT '',
    PRIMARY KEY (act_id, line, leg)
);
CREATE INDEX {{prefix}}adjustments_customer ON {{prefix}}adjustments (customer_no);

-- The postings of all operations: those of adjustments, and those that follow from sales (kind
-- 1) and from reversals (kind 4). For people: the service does not read it.
CREATE VIEW {{prefix}}postings AS
SELECT a.customer_no, a.act_id AS operation_id, a.line AS position, a.leg, a.kind, a.imkb_code, a.holder_corporation_name,
    a.branch_code, a.account_suffix, a.currency_code, a.quantity, a.posted_at
FROM {{prefix}}adjustments a
UNION ALL
SELECT s.customer_no, s.operation_id, s.position, CAST(1 AS smallint), CAST(1 AS smallint), s.imkb_code, s.holder_corporation_name,
    CAST(0 AS bigint), CAST(0 AS bigint), CAST('' AS text), -s.units, o.ended_at
FROM {{prefix}}sales s JOIN {{prefix}}operations o ON o.operation_id = s.operation_id WHERE s.state = 2
UNION ALL
SELECT s.account_customer_no, s.operation_id, s.position, CAST(2 AS smallint), CAST(1 AS smallint), CAST('' AS text), CAST('' AS text),
    s.branch_code, s.account_suffix, s.currency_code, s.proceeds, o.ended_at
FROM {{prefix}}sales s JOIN {{prefix}}operations o ON o.operation_id = s.operation_id WHERE s.state = 2
UNION ALL
SELECT s.customer_no, o.reversal_id, s.position, CAST(1 AS smallint), CAST(4 AS smallint), s.imkb_code, s.holder_corporation_name,
    CAST(0 AS bigint), CAST(0 AS bigint), CAST('' AS text), s.units, o.reversed_at
FROM {{prefix}}sales s JOIN {{prefix}}operations o ON o.operation_id = s.operation_id WHERE s.state = 2 AND o.reversal_id IS NOT NULL
UNION ALL
SELECT s.account_customer_no, o.reversal_id, s.position, CAST(2 AS smallint), CAST(4 AS smallint), CAST('' AS text), CAST('' AS text),
    s.branch_code, s.account_suffix, s.currency_code, -s.proceeds, o.reversed_at
FROM {{prefix}}sales s JOIN {{prefix}}operations o ON o.operation_id = s.operation_id WHERE s.state = 2 AND o.reversal_id IS NOT NULL;

-- identity is a keyed hash of the message (properties, messages_key). It never changes: an
-- erased notification has an empty user_id and the same identity. erasure_id is the act in
-- audits. tran_data is empty without TranData.
CREATE TABLE {{prefix}}notifications (
    push_interaction_id       bigint,
    send_date                 date,
    position                  integer  NOT NULL,
    platform                  smallint NOT NULL,
    send_status               smallint NOT NULL,
    operation_id              uuid     NOT NULL,
    erasure_id                uuid,
    identity                  uuid     NOT NULL,
    user_id                   text COLLATE "C" NOT NULL,
    external_application_code text     NOT NULL,
    push_id                   text     NOT NULL,
    external_tran_code        text     NOT NULL DEFAULT '',
    subject                   text     NOT NULL DEFAULT '',
    content                   text     NOT NULL DEFAULT '',
    deep_link_url             text     NOT NULL DEFAULT '',
    tran_data                 text     NOT NULL DEFAULT '',
    PRIMARY KEY (identity)
);
CREATE INDEX {{prefix}}notifications_operation ON {{prefix}}notifications (operation_id);

-- The order in which operations ended after they were answered: settled, cancelled, or (reversed
-- is 1) reversed. The results stand in operations. The transaction that ends an
-- operation takes the next number from the property outcomes, which it locks until it has
-- committed. So a reader that sees a number sees all smaller numbers.
CREATE TABLE {{prefix}}outcomes (
    number       bigint   NOT NULL,
    reversed     smallint NOT NULL DEFAULT 0,
    operation_id uuid     NOT NULL,
    subscription text COLLATE "C" NOT NULL,
    PRIMARY KEY (number)
);
CREATE INDEX {{prefix}}outcomes_operation ON {{prefix}}outcomes (operation_id);
CREATE INDEX {{prefix}}outcomes_subscription ON {{prefix}}outcomes (subscription, number);

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

-- The log of requests: the errors and repeats of the last days, of all replicas. It is no
-- part of the book or the trail.
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
CREATE INDEX {{prefix}}requests_class ON {{prefix}}requests ((status / 100), entry_id);

-- One row for each running replica, which it writes again and again: what it is and what is wrong
-- with it. seen_at is by the clock of this server. silence is how many microseconds later the
-- replica counts as missing. troubles is JSON.
CREATE TABLE {{prefix}}replicas (
    replica_id uuid        NOT NULL,
    began_at   timestamptz NOT NULL,
    seen_at    timestamptz NOT NULL,
    silence    bigint      NOT NULL,
    name       text COLLATE "C" NOT NULL,
    version    text        NOT NULL DEFAULT '',
    troubles   text        NOT NULL DEFAULT '',
    PRIMARY KEY (replica_id)
);

-- The trail: a log of everything that happened, which only grows. A batch has the leaves of
-- one commit. position is its place in the log, and NULL until a service has sealed it.
-- Hashes do not compress.
CREATE TABLE {{prefix}}trail_batches (
    batch_id uuid   NOT NULL,
    entries  bytea  NOT NULL,
    mac      bytea  NOT NULL,
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

-- A customer's rows are a few among millions. A B-tree would double the cost of an insert.
-- These indexes of page ranges cost almost nothing. A range of customers has 16 pages: with
-- 32, a filter is twice as long, and with 8, a lookup reads too many of them. Notifications
-- do not change, so their ranges are as long as a filter fits into a page. Rows without an
-- X-Request-Id are in no index for it. A server without such indexes reads the tables.
DO $$
BEGIN
    CREATE INDEX {{prefix}}sales_customer ON {{prefix}}sales USING brin
        (customer_no int8_bloom_ops (false_positive_rate = 0.001), operation_id)
        WITH (autosummarize = on, pages_per_range = 16);
    CREATE INDEX {{prefix}}operations_request ON {{prefix}}operations USING brin
        (request_id text_bloom_ops (false_positive_rate = 0.001), operation_id)
        WITH (autosummarize = on, pages_per_range = 32) WHERE request_id <> '';
    CREATE INDEX {{prefix}}notifications_user ON {{prefix}}notifications USING brin
        (user_id text_bloom_ops (false_positive_rate = 0.001), operation_id)
        WITH (pages_per_range = 64, autosummarize = on);
    CREATE INDEX {{prefix}}notifications_push ON {{prefix}}notifications USING brin
        (push_id text_bloom_ops (false_positive_rate = 0.001), operation_id)
        WITH (autosummarize = on, pages_per_range = 64);
EXCEPTION WHEN feature_not_supported OR undefined_object OR invalid_parameter_value THEN
    RAISE NOTICE 'this server has no BRIN indexes with bloom filters: lookups of a customer read whole tables';
END $$;
-- +goose StatementEnd
