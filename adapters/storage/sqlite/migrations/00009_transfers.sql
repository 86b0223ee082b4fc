-- Both postings of a sale in one row, which takes less than half of the room of two.
--
-- It only adds. A program of version 8 that is running keeps writing two rows, and a
-- program of this version reads both. But the console of version 8 does not show the
-- postings of sales that a program of this version has settled.
-- +goose Up

-- A transfer has the posting of a sale's units (leg 1) and that of its proceeds (leg 2).
-- Imports, corrections, reversals and the sales of earlier versions are in postings.
CREATE TABLE {{prefix}}transfers (
    operation_id            BLOB    NOT NULL,
    position                INTEGER NOT NULL,
    customer_no             INTEGER NOT NULL,
    unit_quantity           INTEGER NOT NULL,
    account_customer_no     INTEGER NOT NULL,
    branch_code             INTEGER NOT NULL,
    account_suffix          INTEGER NOT NULL,
    money_quantity          INTEGER NOT NULL,
    posted_at               TEXT    NOT NULL,
    imkb_code               TEXT    NOT NULL,
    holder_corporation_name TEXT    NOT NULL,
    currency_code           TEXT    NOT NULL,
    PRIMARY KEY (operation_id, position)
) STRICT;

-- +goose Down
-- The first form of this migration made a view.
DROP VIEW IF EXISTS {{prefix}}all_postings;
INSERT INTO {{prefix}}postings
SELECT customer_no, operation_id, position, 1, 1, imkb_code, holder_corporation_name, 0, 0, '', unit_quantity, posted_at
FROM {{prefix}}transfers;
INSERT INTO {{prefix}}postings
SELECT account_customer_no, operation_id, position, 2, 1, '', '', branch_code, account_suffix, currency_code, money_quantity, posted_at
FROM {{prefix}}transfers;
DROP TABLE {{prefix}}transfers;
