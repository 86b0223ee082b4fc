-- Every key has its distribution key, which is the first column (the customer;
-- for pushes the user; for operations the CallerId), so that the same schema can
-- be hash partitioned or distributed. What only grows, sales and postings, has
-- keys that lead with the operation, whose ids grow with time: in a large book a
-- sale then changes two distant pages, and not four.
--
-- Quantities are scaled integers: units 10^-6, prices 10^-8, money in minor
-- units of its currency. Texts in keys compare by byte (COLLATE "C"): quickly,
-- in the order of SQLite and of Go, and as they did before an upgrade of the
-- system's locales.
-- +goose Up
CREATE TABLE {{prefix}}subscriptions (
    name                text COLLATE "C" NOT NULL,
    state               text        NOT NULL,
    operations          text        NOT NULL,
    requests_per_second bigint      NOT NULL,
    app_key             text        NOT NULL,
    channel             text        NOT NULL,
    teller_name         text        NOT NULL,
    primary_hash        bytea       NOT NULL,
    secondary_hash      bytea       NOT NULL,
    PRIMARY KEY (name)
);

CREATE TABLE {{prefix}}prices (
    price_id                bigint NOT NULL,
    imkb_code               text COLLATE "C" NOT NULL,
    holder_corporation_name text COLLATE "C" NOT NULL,
    price                   bigint NOT NULL CHECK (price > 0),
    currency_code           text   NOT NULL,
    valid_from              date   NOT NULL,
    PRIMARY KEY (price_id)
);
CREATE INDEX {{prefix}}prices_current ON {{prefix}}prices (imkb_code, holder_corporation_name, valid_from, price_id);

-- Room in every page lets a changed quantity stay in its page, and its index alone.
CREATE TABLE {{prefix}}holdings (
    customer_no             bigint NOT NULL,
    imkb_code               text COLLATE "C" NOT NULL,
    holder_corporation_name text COLLATE "C" NOT NULL,
    units                   bigint NOT NULL CHECK (units >= 0),
    PRIMARY KEY (customer_no, imkb_code, holder_corporation_name)
) WITH (fillfactor = 50);

CREATE TABLE {{prefix}}accounts (
    customer_no    bigint NOT NULL,
    branch_code    bigint NOT NULL,
    account_suffix bigint NOT NULL,
    currency_code  text COLLATE "C" NOT NULL,
    balance        bigint NOT NULL CHECK (balance >= 0),
    PRIMARY KEY (customer_no, branch_code, account_suffix, currency_code)
) WITH (fillfactor = 50);

-- Operations whose caller gave a CallerId: what a repeat is held against.
CREATE TABLE {{prefix}}operations (
    caller_id    text COLLATE "C" NOT NULL,
    subscription text COLLATE "C" NOT NULL,
    operation    bigint NOT NULL,
    operation_id uuid   NOT NULL,
    fingerprint  bytea  NOT NULL,
    state        bigint NOT NULL,
    faults       text   NOT NULL DEFAULT '',
    PRIMARY KEY (caller_id, subscription, operation)
);

CREATE TABLE {{prefix}}sales (
    customer_no             bigint      NOT NULL,
    operation_id            uuid        NOT NULL,
    position                bigint      NOT NULL,
    subscription            text        NOT NULL,
    app_key                 text        NOT NULL DEFAULT '',
    channel                 text        NOT NULL DEFAULT '',
    teller_name             text        NOT NULL DEFAULT '',
    caller_id               text        NOT NULL DEFAULT '',
    channel_session_id      text        NOT NULL DEFAULT '',
    channel_request_id      text        NOT NULL DEFAULT '',
    imkb_code               text        NOT NULL,
    holder_corporation_name text        NOT NULL,
    price_id                bigint      NOT NULL,
    units                   bigint      NOT NULL CHECK (units > 0),
    account_customer_no     bigint      NOT NULL,
    branch_code             bigint      NOT NULL,
    account_suffix          bigint      NOT NULL,
    currency_code           text        NOT NULL,
    control_total           bigint      NOT NULL DEFAULT 0,
    selected_date           date,
    state                   bigint      NOT NULL,
    settled_price_id        bigint,
    settled_price           bigint,
    proceeds                bigint,
    refusal                 text        NOT NULL DEFAULT '',
    received_at             timestamptz NOT NULL,
    settled_at              timestamptz,
    PRIMARY KEY (operation_id, position, customer_no)
);
-- Only what waits for its day is in here: other sales never touch it.
CREATE INDEX {{prefix}}sales_due ON {{prefix}}sales (selected_date, operation_id, position) WHERE state = 1;

-- A posting moves a quantity between a customer's holding (leg 1) or account
-- (leg 2) and the bank's counter-position; it cannot be out of balance.
CREATE TABLE {{prefix}}postings (
    customer_no             bigint      NOT NULL,
    operation_id            uuid        NOT NULL,
    position                bigint      NOT NULL,
    leg                     bigint      NOT NULL,
    kind                    bigint      NOT NULL,
    imkb_code               text        NOT NULL DEFAULT '',
    holder_corporation_name text        NOT NULL DEFAULT '',
    branch_code             bigint      NOT NULL DEFAULT 0,
    account_suffix          bigint      NOT NULL DEFAULT 0,
    currency_code           text        NOT NULL DEFAULT '',
    quantity                bigint      NOT NULL,
    posted_at               timestamptz NOT NULL,
    PRIMARY KEY (operation_id, position, leg, customer_no)
);

CREATE TABLE {{prefix}}notifications (
    user_id                   text COLLATE "C" NOT NULL,
    digest                    bytea       NOT NULL,
    operation_id              uuid        NOT NULL,
    position                  bigint      NOT NULL,
    subscription              text        NOT NULL,
    app_key                   text        NOT NULL DEFAULT '',
    channel                   text        NOT NULL DEFAULT '',
    teller_name               text        NOT NULL DEFAULT '',
    caller_id                 text        NOT NULL DEFAULT '',
    channel_session_id        text        NOT NULL DEFAULT '',
    channel_request_id        text        NOT NULL DEFAULT '',
    external_application_code text        NOT NULL,
    external_tran_code        text        NOT NULL DEFAULT '',
    push_id                   text        NOT NULL,
    push_interaction_id       bigint,
    platform                  bigint      NOT NULL,
    subject                   text        NOT NULL DEFAULT '',
    content                   text        NOT NULL DEFAULT '',
    deep_link_url             text        NOT NULL DEFAULT '',
    send_status               bigint      NOT NULL,
    send_date                 date,
    tran_data                 text        NOT NULL,
    received_at               timestamptz NOT NULL,
    PRIMARY KEY (user_id, digest)
);

-- +goose Down
DROP TABLE {{prefix}}notifications;
DROP TABLE {{prefix}}postings;
DROP TABLE {{prefix}}sales;
DROP TABLE {{prefix}}operations;
DROP TABLE {{prefix}}accounts;
DROP TABLE {{prefix}}holdings;
DROP TABLE {{prefix}}prices;
DROP TABLE {{prefix}}subscriptions;
