-- The book of version 1: the tables of Postgres, one for one. Days are YYYY-MM-DD, times
-- RFC 3339 in UTC with six decimals (their texts sort like the times), IDs 16 bytes.
-- Quantities are scaled integers: units 10^-6, prices 10^-8, money in minor units of its
-- currency.
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
    name  TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (name)
) STRICT, WITHOUT ROWID;

INSERT INTO {{prefix}}properties (name, value)
VALUES ('calendar', ''), ('outcomes', '0'), ('log_size', '0'), ('log_checkpoint', ''), ('log_begun', '0');

CREATE TABLE {{prefix}}subscriptions (
    name                 TEXT NOT NULL,
    state                TEXT NOT NULL,
    operations           TEXT NOT NULL,
    requests_per_second  INTEGER NOT NULL,
    app_key              TEXT NOT NULL,
    channel              TEXT NOT NULL,
    teller_name          TEXT NOT NULL,
    primary_hash         BLOB NOT NULL,
    secondary_hash       BLOB NOT NULL,
    require_caller_id    INTEGER NOT NULL DEFAULT 0,
    created_at           TEXT,
    primary_created_at   TEXT,
    secondary_created_at TEXT,
    primary_expires_at   TEXT,
    secondary_expires_at TEXT,
    primary_used_at      TEXT,
    secondary_used_at    TEXT,
    without_caller_id_at TEXT,
    client_certificate   TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (name)
) STRICT;

CREATE TABLE {{prefix}}prices (
    price_id                INTEGER NOT NULL,
    imkb_code               TEXT NOT NULL,
    holder_corporation_name TEXT NOT NULL,
    price                   INTEGER NOT NULL CHECK (price > 0),
    currency_code           TEXT NOT NULL,
    valid_from              TEXT NOT NULL,
    act_id                  BLOB, -- of the import, in audits; NULL if it has none
    PRIMARY KEY (price_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX {{prefix}}prices_current ON {{prefix}}prices (imkb_code, holder_corporation_name, valid_from, price_id);

CREATE TABLE {{prefix}}holdings (
    customer_no             INTEGER NOT NULL,
    imkb_code               TEXT NOT NULL,
    holder_corporation_name TEXT NOT NULL,
    units                   INTEGER NOT NULL CHECK (units >= 0),
    PRIMARY KEY (customer_no, imkb_code, holder_corporation_name)
) STRICT, WITHOUT ROWID;

CREATE TABLE {{prefix}}accounts (
    customer_no    INTEGER NOT NULL,
    branch_code    INTEGER NOT NULL,
    account_suffix INTEGER NOT NULL,
    currency_code  TEXT NOT NULL,
    balance        INTEGER NOT NULL CHECK (balance >= 0),
    PRIMARY KEY (customer_no, branch_code, account_suffix, currency_code)
) STRICT, WITHOUT ROWID;

-- Every operation that was answered: one row, whatever becomes of it. A message may have been
-- stored by an earlier operation; the operation that sent it again is here too.
--
-- identity is a hash of operation, subscription and CallerId, or operation_id without a
-- CallerId. due_on is the day for which the operation was recorded. ended_at is when its sales
-- were carried out or failed on their day. reversal_id and reversed_at name the act that
-- reversed it. faults has lines of code and pointer. session_hash replaces channel_session_id
-- after personal data was erased. request_id is empty if the caller sent no X-Request-Id.
CREATE TABLE {{prefix}}operations (
    received_at        TEXT NOT NULL,
    ended_at           TEXT,
    reversed_at        TEXT,
    due_on             TEXT,
    operation          INTEGER NOT NULL,
    state              INTEGER NOT NULL,
    identity           BLOB NOT NULL,
    operation_id       BLOB NOT NULL,
    reversal_id        BLOB,
    fingerprint        BLOB NOT NULL DEFAULT x'',
    session_hash       BLOB NOT NULL DEFAULT x'',
    subscription       TEXT NOT NULL,
    app_key            TEXT NOT NULL DEFAULT '',
    channel            TEXT NOT NULL DEFAULT '',
    teller_name        TEXT NOT NULL DEFAULT '',
    caller_id          TEXT NOT NULL DEFAULT '',
    channel_session_id TEXT NOT NULL DEFAULT '',
    channel_request_id TEXT NOT NULL DEFAULT '',
    request_id         TEXT NOT NULL DEFAULT '',
    faults             TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (operation_id)
) STRICT;
CREATE UNIQUE INDEX {{prefix}}operations_identity ON {{prefix}}operations (identity) WHERE caller_id <> '';
-- Operations that wait for their day, or for a price. Other operations never change this index.
CREATE INDEX {{prefix}}operations_due ON {{prefix}}operations (due_on, operation_id) WHERE state = 1;
CREATE INDEX {{prefix}}operations_failed ON {{prefix}}operations (operation_id) WHERE state = 8;
-- Operations by the time at which they ended on their day.
CREATE INDEX {{prefix}}operations_ended ON {{prefix}}operations (ended_at) WHERE due_on IS NOT NULL;
CREATE INDEX {{prefix}}operations_reversal ON {{prefix}}operations (reversal_id) WHERE reversal_id IS NOT NULL;

-- The sales of operations in their order, also those that a refused operation asked for. When
-- a sale was settled stands in operations: ended_at.
CREATE TABLE {{prefix}}sales (
    customer_no             INTEGER NOT NULL,
    price_id                INTEGER NOT NULL,
    units                   INTEGER NOT NULL CHECK (units > 0),
    account_customer_no     INTEGER NOT NULL,
    branch_code             INTEGER NOT NULL,
    account_suffix          INTEGER NOT NULL,
    control_total           INTEGER,
    settled_price_id        INTEGER,
    settled_price           INTEGER,
    proceeds                INTEGER,
    selected_date           TEXT,
    position                INTEGER NOT NULL,
    state                   INTEGER NOT NULL,
    operation_id            BLOB NOT NULL,
    currency_code           TEXT NOT NULL,
    imkb_code               TEXT NOT NULL,
    holder_corporation_name TEXT NOT NULL,
    refusal                 TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (operation_id, position)
) STRICT;
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
    customer_no             INTEGER NOT NULL,
    branch_code             INTEGER NOT NULL DEFAULT 0,
    account_suffix          INTEGER NOT NULL DEFAULT 0,
    quantity                INTEGER NOT NULL,
    posted_at               TEXT NOT NULL,
    line                    INTEGER NOT NULL,
    leg                     INTEGER NOT NULL,
    kind                    INTEGER NOT NULL,
    act_id                  BLOB NOT NULL,
    imkb_code               TEXT NOT NULL DEFAULT '',
    holder_corporation_name TEXT NOT NULL DEFAULT '',
    currency_code           TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (act_id, line, leg)
) STRICT, WITHOUT ROWID;
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
    push_interaction_id       INTEGER,
    send_date                 TEXT,
    position                  INTEGER NOT NULL,
    platform                  INTEGER NOT NULL,
    send_status               INTEGER NOT NULL,
    operation_id              BLOB NOT NULL,
    erasure_id                BLOB,
    identity                  BLOB NOT NULL,
    user_id                   TEXT NOT NULL,
    external_application_code TEXT NOT NULL,
    push_id                   TEXT NOT NULL,
    external_tran_code        TEXT NOT NULL DEFAULT '',
    subject                   TEXT NOT NULL DEFAULT '',
    content                   TEXT NOT NULL DEFAULT '',
    deep_link_url             TEXT NOT NULL DEFAULT '',
    tran_data                 TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (identity)
) STRICT;
CREATE INDEX {{prefix}}notifications_operation ON {{prefix}}notifications (operation_id);

-- The order in which operations ended after they were answered: settled, cancelled, or (reversed
-- is 1) reversed. The results stand in operations. The transaction that ends an
-- operation takes the next number from the property outcomes, which it locks until it has
-- committed. So a reader that sees a number sees all smaller numbers.
CREATE TABLE {{prefix}}outcomes (
    number       INTEGER NOT NULL,
    reversed     INTEGER NOT NULL DEFAULT 0,
    operation_id BLOB NOT NULL,
    subscription TEXT NOT NULL,
    PRIMARY KEY (number)
) STRICT;
CREATE INDEX {{prefix}}outcomes_operation ON {{prefix}}outcomes (operation_id);
CREATE INDEX {{prefix}}outcomes_subscription ON {{prefix}}outcomes (subscription, number);

-- Every act of administration.
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

-- The log of requests: the errors and repeats of the last days, of all replicas. It is no
-- part of the book or the trail.
CREATE TABLE {{prefix}}requests (
    entry_id     BLOB NOT NULL,
    at           TEXT NOT NULL,
    microseconds INTEGER NOT NULL,
    method       TEXT NOT NULL,
    route        TEXT NOT NULL DEFAULT '',
    operation    TEXT NOT NULL DEFAULT '',
    status       INTEGER NOT NULL,
    state        INTEGER NOT NULL DEFAULT 0,
    replayed     INTEGER NOT NULL DEFAULT 0,
    codes        TEXT NOT NULL DEFAULT '',
    subscription TEXT NOT NULL DEFAULT '',
    caller_id    TEXT NOT NULL DEFAULT '',
    request_id   TEXT NOT NULL DEFAULT '',
    operation_id TEXT NOT NULL DEFAULT '',
    omitted      INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (entry_id)
) STRICT;
CREATE INDEX {{prefix}}requests_request ON {{prefix}}requests (request_id);
CREATE INDEX {{prefix}}requests_caller ON {{prefix}}requests (caller_id);
CREATE INDEX {{prefix}}requests_subscription ON {{prefix}}requests (subscription, entry_id);
CREATE INDEX {{prefix}}requests_class ON {{prefix}}requests ((status / 100), entry_id);

-- One row for each running replica, which it writes again and again: what it is and what is wrong
-- with it. seen_at is by the clock of this machine. silence is how many microseconds later the
-- replica counts as missing. troubles is JSON.
CREATE TABLE {{prefix}}replicas (
    replica_id BLOB    NOT NULL,
    began_at   TEXT    NOT NULL,
    seen_at    TEXT    NOT NULL,
    silence    INTEGER NOT NULL,
    name       TEXT    NOT NULL,
    version    TEXT    NOT NULL DEFAULT '',
    troubles   TEXT    NOT NULL DEFAULT '',
    PRIMARY KEY (replica_id)
) STRICT;

-- The trail: a log of everything that happened, which only grows. A batch has the leaves of
-- one commit. position is its place in the log, and NULL until a service has sealed it.
CREATE TABLE {{prefix}}trail_batches (
    batch_id BLOB NOT NULL,
    entries  BLOB NOT NULL,
    mac      BLOB NOT NULL,
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

-- Where to find the sales of a customer, and what else has no index: a B-tree would make each
-- batch write 46 % more pages. Instead, the service indexes many rows at once in the
-- background. These entries are a run: they are sorted and next to each other. A lookup
-- searches each run, and reads the rows after the last one.
--
-- source is a column of a table (see lookup.go), and last_row the rowid of the last row of the
-- run.
CREATE TABLE {{prefix}}lookup_runs (
    source   INTEGER NOT NULL,
    last_row INTEGER NOT NULL,
    PRIMARY KEY (source, last_row)
) STRICT, WITHOUT ROWID;

CREATE TABLE {{prefix}}lookup_entries (
    source       INTEGER NOT NULL,
    last_row     INTEGER NOT NULL,
    value        ANY     NOT NULL,
    operation_id BLOB    NOT NULL,
    PRIMARY KEY (source, last_row, value, operation_id)
) STRICT, WITHOUT ROWID;
-- +goose StatementEnd
