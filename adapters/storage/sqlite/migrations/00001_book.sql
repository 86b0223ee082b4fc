-- The tables of Postgres, one for one. Days are YYYY-MM-DD, times RFC 3339 in
-- UTC with six decimals (their order is that of the text), IDs 16 bytes.
-- Quantities are scaled integers: units 10^-6, prices 10^-8, money in minor
-- units of its currency.
-- +goose Up
CREATE TABLE {{prefix}}subscriptions (
    name                TEXT NOT NULL,
    state               TEXT NOT NULL,
    operations          TEXT NOT NULL,
    requests_per_second INTEGER NOT NULL,
    app_key             TEXT NOT NULL,
    channel             TEXT NOT NULL,
    teller_name         TEXT NOT NULL,
    primary_hash        BLOB NOT NULL,
    secondary_hash      BLOB NOT NULL,
    PRIMARY KEY (name)
) STRICT;

CREATE TABLE {{prefix}}prices (
    price_id                INTEGER NOT NULL,
    imkb_code               TEXT NOT NULL,
    holder_corporation_name TEXT NOT NULL,
    price                   INTEGER NOT NULL CHECK (price > 0),
    currency_code           TEXT NOT NULL,
    valid_from              TEXT NOT NULL,
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

-- Operations whose caller gave a CallerId: what a repeat is held against.
CREATE TABLE {{prefix}}operations (
    caller_id    TEXT NOT NULL,
    subscription TEXT NOT NULL,
    operation    INTEGER NOT NULL,
    operation_id BLOB NOT NULL,
    fingerprint  BLOB NOT NULL,
    state        INTEGER NOT NULL,
    faults       TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (caller_id, subscription, operation)
) STRICT, WITHOUT ROWID;

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
    PRIMARY KEY (operation_id, position, customer_no)
) STRICT;
-- Only what waits for its day is in here: other sales never touch it.
CREATE INDEX {{prefix}}sales_due ON {{prefix}}sales (selected_date, operation_id, position) WHERE state = 1;

-- A posting moves a quantity between a customer's holding (leg 1) or account
-- (leg 2) and the bank's counter-position; it cannot be out of balance.
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

CREATE TABLE {{prefix}}notifications (
    user_id                   TEXT NOT NULL,
    digest                    BLOB NOT NULL,
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
    PRIMARY KEY (user_id, digest)
) STRICT;

-- +goose Down
DROP TABLE {{prefix}}notifications;
DROP TABLE {{prefix}}postings;
DROP TABLE {{prefix}}sales;
DROP TABLE {{prefix}}operations;
DROP TABLE {{prefix}}accounts;
DROP TABLE {{prefix}}holdings;
DROP TABLE {{prefix}}prices;
DROP TABLE {{prefix}}subscriptions;
