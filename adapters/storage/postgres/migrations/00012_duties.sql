-- Messages whose personal data were erased, and the sales of operations that were refused
-- at once.
--
-- It only adds. A program of version 11 that is running keeps working, but it stores an
-- erased message again if it is sent again, and keeps no refused sales. So erase messages
-- when it has ended. Adding the columns takes no time.
-- +goose Up

-- An erased notification has an empty user_id, and a digest of version 2, which is keyed
-- (properties, messages_key). erasure_id is the act in audits. leaf is the hash of its leaf
-- in the trail, which cannot be made from the row any more.
ALTER TABLE {{prefix}}notifications
    ADD COLUMN erasure_id     uuid  NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    ADD COLUMN erasure_reason text  NOT NULL DEFAULT '',
    ADD COLUMN leaf           bytea NOT NULL DEFAULT '';

-- What a refused operation asked for. The columns are those of sales.
CREATE TABLE {{prefix}}refused_sales (
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
    units                   bigint      NOT NULL,
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
    request_id              text        NOT NULL DEFAULT '',
    PRIMARY KEY (operation_id, position, customer_no)
);
CREATE INDEX {{prefix}}refused_sales_customer ON {{prefix}}refused_sales (customer_no, operation_id);

-- +goose Down
DROP TABLE {{prefix}}refused_sales;
ALTER TABLE {{prefix}}notifications
    DROP COLUMN leaf,
    DROP COLUMN erasure_reason,
    DROP COLUMN erasure_id;
