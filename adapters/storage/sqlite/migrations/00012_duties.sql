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
ALTER TABLE {{prefix}}notifications ADD COLUMN erasure_id BLOB NOT NULL DEFAULT x'00000000000000000000000000000000';
ALTER TABLE {{prefix}}notifications ADD COLUMN erasure_reason TEXT NOT NULL DEFAULT '';
ALTER TABLE {{prefix}}notifications ADD COLUMN leaf BLOB NOT NULL DEFAULT x'';

-- What a refused operation asked for. The columns are those of sales.
CREATE TABLE {{prefix}}refused_sales (
    customer_no             INTEGER NOT NULL,
    operation_id            BLOB    NOT NULL,
    position                INTEGER NOT NULL,
    subscription            TEXT    NOT NULL,
    app_key                 TEXT    NOT NULL DEFAULT '',
    channel                 TEXT    NOT NULL DEFAULT '',
    teller_name             TEXT    NOT NULL DEFAULT '',
    caller_id               TEXT    NOT NULL DEFAULT '',
    channel_session_id      TEXT    NOT NULL DEFAULT '',
    channel_request_id      TEXT    NOT NULL DEFAULT '',
    imkb_code               TEXT    NOT NULL,
    holder_corporation_name TEXT    NOT NULL,
    price_id                INTEGER NOT NULL,
    units                   INTEGER NOT NULL,
    account_customer_no     INTEGER NOT NULL,
    branch_code             INTEGER NOT NULL,
    account_suffix          INTEGER NOT NULL,
    currency_code           TEXT    NOT NULL,
    control_total           INTEGER NOT NULL DEFAULT 0,
    selected_date           TEXT,
    state                   INTEGER NOT NULL,
    settled_price_id        INTEGER,
    settled_price           INTEGER,
    proceeds                INTEGER,
    refusal                 TEXT    NOT NULL DEFAULT '',
    received_at             TEXT    NOT NULL,
    settled_at              TEXT,
    request_id              TEXT    NOT NULL DEFAULT '',
    PRIMARY KEY (operation_id, position, customer_no)
) STRICT;
CREATE INDEX {{prefix}}refused_sales_customer ON {{prefix}}refused_sales (customer_no, operation_id);

-- +goose Down
DROP TABLE {{prefix}}refused_sales;
ALTER TABLE {{prefix}}notifications DROP COLUMN leaf;
ALTER TABLE {{prefix}}notifications DROP COLUMN erasure_reason;
ALTER TABLE {{prefix}}notifications DROP COLUMN erasure_id;
