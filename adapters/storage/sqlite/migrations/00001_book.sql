-- The book of version 1: the tables of Postgres, one for one. Days are YYYY-MM-DD, times
-- RFC 3339 in UTC with six decimals (their texts sort like the times), IDs 16 bytes.
-- Quantities are scaled integers: units 10^-6, prices 10^-8, money in minor units of its
-- currency.
-- +goose Up

-- What is true of the book as a whole:
--
--   messages_key                         the key of the identities of messages
--   messages_erased_before               the day before which all messages were erased
--   time_zone                            of the days of the book
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
CREATE INDEX {{prefix}}operations_failed ON {{prefix}}operations (operation_id) WHERE state = 8;
CREATE INDEX {{prefix}}operations_reversal ON {{prefix}}operations (reversal_id) WHERE reversal_id IS NOT NULL;

-- request_id is empty if the caller sent no X-Request-Id.
CREATE TABLE {{prefix}}sales (
    customer_no             INTEGER NOT NULL,
    operation_id            BLOB NOT NULL,
    position                INTEGER NOT NULL,
    subscription            TEXT NOT NULL,
    app_key                 TEXT NOT NULL DEFAULT '',
    channel                 TEXT NOT NULL DEFAULT '',
    teller_name             TEXT NOT NULL DEFAULT '',
    caller_id               TEXT NOT NULL DEFAULT '',
    channel_session_id      TEXT NOT NULL DEFAULT '',
    channel_request_id      TEXT NOT NULL DEFAULT '',
    imkb_code               TEXT NOT NULL,
    holder_corporation_name TEXT NOT NULL,
    price_id                INTEGER NOT NULL,
    units                   INTEGER NOT NULL CHECK (units > 0),
    account_customer_no     INTEGER NOT NULL,
    branch_code             INTEGER NOT NULL,
    account_suffix          INTEGER NOT NULL,
    currency_code           TEXT NOT NULL,
    control_total           INTEGER NOT NULL DEFAULT 0,
    selected_date           TEXT,
    state                   INTEGER NOT NULL,
    settled_price_id        INTEGER,
    settled_price           INTEGER,
    proceeds                INTEGER,
    refusal                 TEXT NOT NULL DEFAULT '',
    received_at             TEXT NOT NULL,
    settled_at              TEXT,
    request_id              TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (operation_id, position, customer_no)
) STRICT;
-- Sales that wait for their day, or for a price. Other sales never change these indexes.
CREATE INDEX {{prefix}}sales_due ON {{prefix}}sales (selected_date, operation_id, position) WHERE state = 1;
CREATE INDEX {{prefix}}sales_fund ON {{prefix}}sales
    (selected_date, imkb_code, holder_corporation_name, operation_id, position) WHERE state = 1;
-- Sales that failed on their day: few among many that completed.
CREATE INDEX {{prefix}}sales_failed ON {{prefix}}sales (operation_id, position) WHERE state = 8;
-- Sales whose proceeds went to the account of another customer.
CREATE INDEX {{prefix}}sales_account ON {{prefix}}sales (account_customer_no) WHERE account_customer_no <> customer_no;

-- A posting moves a quantity between a customer's holding (leg 1) or account (leg 2) and the
-- bank's counter-position, so it is always in balance. The postings of sales are in transfers.
CREATE TABLE {{prefix}}postings (
    customer_no             INTEGER NOT NULL,
    operation_id            BLOB NOT NULL,
    position                INTEGER NOT NULL,
    leg                     INTEGER NOT NULL,
    kind                    INTEGER NOT NULL,
    imkb_code               TEXT NOT NULL DEFAULT '',
    holder_corporation_name TEXT NOT NULL DEFAULT '',
    branch_code             INTEGER NOT NULL DEFAULT 0,
    account_suffix          INTEGER NOT NULL DEFAULT 0,
    currency_code           TEXT NOT NULL DEFAULT '',
    quantity                INTEGER NOT NULL,
    posted_at               TEXT NOT NULL,
    PRIMARY KEY (operation_id, position, leg, customer_no)
) STRICT;
CREATE INDEX {{prefix}}postings_customer ON {{prefix}}postings (customer_no) WHERE kind <> 1;

-- A transfer has the posting of a sale's units (leg 1) and that of its proceeds (leg 2).
CREATE TABLE {{prefix}}transfers (
    operation_id            BLOB NOT NULL,
    position                INTEGER NOT NULL,
    customer_no             INTEGER NOT NULL,
    unit_quantity           INTEGER NOT NULL,
    account_customer_no     INTEGER NOT NULL,
    branch_code             INTEGER NOT NULL,
    account_suffix          INTEGER NOT NULL,
    money_quantity          INTEGER NOT NULL,
    posted_at               TEXT NOT NULL,
    imkb_code               TEXT NOT NULL,
    holder_corporation_name TEXT NOT NULL,
    currency_code           TEXT NOT NULL,
    PRIMARY KEY (operation_id, position)
) STRICT;

-- identity is a keyed hash of the message (properties, messages_key). It never changes: an
-- erased notification has an empty user_id and the same identity. erasure_id is the act in
-- audits.
CREATE TABLE {{prefix}}notifications (
    identity                  BLOB NOT NULL,
    user_id                   TEXT NOT NULL,
    operation_id              BLOB NOT NULL,
    position                  INTEGER NOT NULL,
    subscription              TEXT NOT NULL,
    app_key                   TEXT NOT NULL DEFAULT '',
    channel                   TEXT NOT NULL DEFAULT '',
    teller_name               TEXT NOT NULL DEFAULT '',
    caller_id                 TEXT NOT NULL DEFAULT '',
    channel_session_id        TEXT NOT NULL DEFAULT '',
    channel_request_id        TEXT NOT NULL DEFAULT '',
    external_application_code TEXT NOT NULL,
    external_tran_code        TEXT NOT NULL DEFAULT '',
    push_id                   TEXT NOT NULL,
    push_interaction_id       INTEGER,
    platform                  INTEGER NOT NULL,
    subject                   TEXT NOT NULL DEFAULT '',
    content                   TEXT NOT NULL DEFAULT '',
    deep_link_url             TEXT NOT NULL DEFAULT '',
    send_status               INTEGER NOT NULL,
    send_date                 TEXT,
    tran_data                 TEXT NOT NULL,
    received_at               TEXT NOT NULL,
    request_id                TEXT NOT NULL DEFAULT '',
    erasure_id                BLOB NOT NULL DEFAULT x'00000000000000000000000000000000',
    erasure_reason            TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (identity)
) STRICT;
CREATE INDEX {{prefix}}notifications_operation ON {{prefix}}notifications (operation_id);

-- The results of operations that ended after they were answered. The transaction that ends an
-- operation takes the next number from the property outcomes, which it locks until it has
-- committed. So a reader that sees a number sees all smaller numbers.
CREATE TABLE {{prefix}}outcomes (
    number       INTEGER NOT NULL,
    operation_id BLOB NOT NULL,
    subscription TEXT NOT NULL,
    caller_id    TEXT NOT NULL DEFAULT '',
    state        INTEGER NOT NULL,
    faults       TEXT NOT NULL DEFAULT '',
    reversed     INTEGER NOT NULL DEFAULT 0,
    ended_at     TEXT NOT NULL,
    PRIMARY KEY (number)
) STRICT;
CREATE INDEX {{prefix}}outcomes_subscription ON {{prefix}}outcomes (subscription, number);
CREATE INDEX {{prefix}}outcomes_ended ON {{prefix}}outcomes (ended_at);

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
