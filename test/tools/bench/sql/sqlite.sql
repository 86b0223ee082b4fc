-- sql/postgres.sql in SQLite's types: days and instants as text, ids as blobs.
CREATE TABLE prices (
    price_id                integer PRIMARY KEY,
    imkb_code               text   NOT NULL,
    holder_corporation_name text   NOT NULL,
    price                   integer NOT NULL CHECK (price > 0),
    currency_code           text   NOT NULL,
    valid_from              text   NOT NULL
) WITHOUT ROWID;

CREATE TABLE holdings (
    customer_no             integer NOT NULL,
    imkb_code               text   NOT NULL,
    holder_corporation_name text   NOT NULL,
    units                   integer NOT NULL CHECK (units >= 0),
    PRIMARY KEY (customer_no, imkb_code, holder_corporation_name)
) WITHOUT ROWID;

CREATE TABLE accounts (
    customer_no    integer NOT NULL,
    branch_code    integer NOT NULL,
    account_suffix integer NOT NULL,
    currency_code  text   NOT NULL,
    balance        integer NOT NULL CHECK (balance >= 0),
    PRIMARY KEY (customer_no, branch_code, account_suffix, currency_code)
) WITHOUT ROWID;

CREATE TABLE operations (
    received_at  text NOT NULL,
    ended_at     text,
    operation    integer NOT NULL,
    state        integer NOT NULL,
    identity     blob NOT NULL UNIQUE,
    operation_id blob NOT NULL PRIMARY KEY,
    fingerprint  blob NOT NULL,
    subscription text NOT NULL,
    app_key      text NOT NULL,
    channel      text NOT NULL,
    teller_name  text NOT NULL,
    caller_id    text NOT NULL
) WITHOUT ROWID;

CREATE TABLE sales (
    customer_no             integer NOT NULL,
    price_id                integer NOT NULL,
    units                   integer NOT NULL,
    account_customer_no     integer NOT NULL,
    branch_code             integer NOT NULL,
    account_suffix          integer NOT NULL,
    settled_price_id        integer NOT NULL,
    settled_price           integer NOT NULL,
    proceeds                integer NOT NULL,
    position                integer NOT NULL,
    state                   integer NOT NULL,
    operation_id            blob NOT NULL,
    currency_code           text NOT NULL,
    imkb_code               text NOT NULL,
    holder_corporation_name text NOT NULL,
    PRIMARY KEY (operation_id, position)
) WITHOUT ROWID;

CREATE TABLE notifications (
    push_interaction_id       integer NOT NULL,
    send_date                 text NOT NULL,
    position                  integer NOT NULL,
    platform                  integer NOT NULL,
    send_status               integer NOT NULL,
    operation_id              blob NOT NULL,
    identity                  blob NOT NULL PRIMARY KEY,
    user_id                   text NOT NULL,
    external_application_code text NOT NULL,
    push_id                   text NOT NULL,
    external_tran_code        text NOT NULL,
    subject                   text NOT NULL,
    content                   text NOT NULL,
    deep_link_url             text NOT NULL,
    tran_data                 text NOT NULL
) WITHOUT ROWID;
CREATE INDEX notifications_operation ON notifications (operation_id);

-- The same book as the CSV files that the service imports.
WITH RECURSIVE fund (f) AS (SELECT 0 UNION ALL SELECT f + 1 FROM fund WHERE f < 19)
INSERT INTO prices
SELECT 101 + f, printf('F%02d', f), 'EXAMPLE PORTFOY YONETIMI A.S.', 1234567891 + f * 1000003, 'TRY', '2020-01-02'
FROM fund;

WITH RECURSIVE customer (c) AS (SELECT 10000001 UNION ALL SELECT c + 101 FROM customer WHERE c < 10000001 + 101 * 9999)
INSERT INTO holdings
SELECT c, printf('F%02d', c % 20), 'EXAMPLE PORTFOY YONETIMI A.S.', 100000000000000
FROM customer;

WITH RECURSIVE customer (c) AS (SELECT 10000001 UNION ALL SELECT c + 101 FROM customer WHERE c < 10000001 + 101 * 9999)
INSERT INTO accounts
SELECT c, 101, 351, 'TRY', 0
FROM customer;
