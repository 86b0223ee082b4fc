-- Both postings of a sale in one row, which takes less than half of the room of two.
--
-- It only adds. A program of version 8 that is running keeps writing two rows, and a
-- program of this version reads both. But the console of version 8 does not show the
-- postings of sales that a program of this version has settled.
-- +goose Up

-- A transfer has the posting of a sale's units (leg 1) and that of its proceeds (leg 2).
-- Imports, corrections, reversals and the sales of earlier versions are in postings.
CREATE TABLE {{prefix}}transfers (
    operation_id            uuid        NOT NULL,
    position                bigint      NOT NULL,
    customer_no             bigint      NOT NULL,
    unit_quantity           bigint      NOT NULL,
    account_customer_no     bigint      NOT NULL,
    branch_code             bigint      NOT NULL,
    account_suffix          bigint      NOT NULL,
    money_quantity          bigint      NOT NULL,
    posted_at               timestamptz NOT NULL,
    imkb_code               text        NOT NULL,
    holder_corporation_name text        NOT NULL,
    currency_code           text        NOT NULL,
    PRIMARY KEY (operation_id, position)
);

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
