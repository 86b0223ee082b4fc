-- The other side's book: the tables a service that runs one transaction per
-- request would have, with the columns and keys of the real one, so that both
-- sides write rows of the same width. Nothing of ours touches them. SQLite stores days and
-- instants as text in these columns, and ids as blobs.
CREATE TABLE prices (
    price_id                bigint PRIMARY KEY,
    imkb_code               text   NOT NULL,
    holder_corporation_name text   NOT NULL,
    price                   bigint NOT NULL CHECK (price > 0),
    currency_code           text   NOT NULL,
    valid_from              date   NOT NULL
);

CREATE TABLE holdings (
    customer_no             bigint NOT NULL,
    imkb_code               text   NOT NULL,
    holder_corporation_name text   NOT NULL,
    units                   bigint NOT NULL CHECK (units >= 0),
    PRIMARY KEY (customer_no, imkb_code, holder_corporation_name)
);

CREATE TABLE accounts (
    customer_no    bigint NOT NULL,
    branch_code    bigint NOT NULL,
    account_suffix bigint NOT NULL,
    currency_code  text   NOT NULL,
    balance        bigint NOT NULL CHECK (balance >= 0),
    PRIMARY KEY (customer_no, branch_code, account_suffix, currency_code)
);

CREATE TABLE operations (
    received_at  timestamptz NOT NULL,
    ended_at     timestamptz,
    operation    smallint NOT NULL,
    state        smallint NOT NULL,
    identity     uuid NOT NULL UNIQUE,
    operation_id uuid NOT NULL PRIMARY KEY,
    fingerprint  bytea NOT NULL,
    subscription text NOT NULL,
    app_key      text NOT NULL,
    channel      text NOT NULL,
    teller_name  text NOT NULL,
    caller_id    text NOT NULL
);

CREATE TABLE sales (
    customer_no             bigint NOT NULL,
    price_id                bigint NOT NULL,
    units                   bigint NOT NULL,
    account_customer_no     bigint NOT NULL,
    branch_code             bigint NOT NULL,
    account_suffix          bigint NOT NULL,
    settled_price_id        bigint NOT NULL,
    settled_price           bigint NOT NULL,
    proceeds                bigint NOT NULL,
    position                integer NOT NULL,
    state                   smallint NOT NULL,
    operation_id            uuid NOT NULL,
    currency_code           text NOT NULL,
    imkb_code               text NOT NULL,
    holder_corporation_name text NOT NULL,
    PRIMARY KEY (operation_id, position)
);

CREATE TABLE notifications (
    push_interaction_id       bigint NOT NULL,
    send_date                 date NOT NULL,
    position                  integer NOT NULL,
    platform                  smallint NOT NULL,
    send_status               smallint NOT NULL,
    operation_id              uuid NOT NULL,
    identity                  uuid NOT NULL PRIMARY KEY,
    user_id                   text NOT NULL,
    external_application_code text NOT NULL,
    push_id                   text NOT NULL,
    external_tran_code        text NOT NULL,
    subject                   text NOT NULL,
    content                   text NOT NULL,
    deep_link_url             text NOT NULL,
    tran_data                 text NOT NULL
);
CREATE INDEX notifications_operation ON notifications (operation_id);

-- The same book as the CSV files that the service imports.
WITH RECURSIVE fund (f) AS (SELECT 0 UNION ALL SELECT f + 1 FROM fund WHERE f < 19)
INSERT INTO prices
SELECT 101 + f, 'F' || substr(CAST(100 + f AS text), 2), 'EXAMPLE PORTFOY YONETIMI A.S.', 1234567891 + f * 1000003, 'TRY', '2020-01-02'
FROM fund;

WITH RECURSIVE customer (c) AS (SELECT 10000001 UNION ALL SELECT c + 101 FROM customer WHERE c < 10000001 + 101 * 9999)
INSERT INTO holdings
SELECT c, 'F' || substr(CAST(100 + c % 20 AS text), 2), 'EXAMPLE PORTFOY YONETIMI A.S.', 100000000000000
FROM customer;

WITH RECURSIVE customer (c) AS (SELECT 10000001 UNION ALL SELECT c + 101 FROM customer WHERE c < 10000001 + 101 * 9999)
INSERT INTO accounts
SELECT c, 101, 351, 'TRY', 0
FROM customer;
