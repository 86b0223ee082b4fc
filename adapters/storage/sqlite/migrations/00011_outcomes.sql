-- The life of a sale for a later day: the days on which the bank is closed, the funds
-- whose sales wait for a price, and what became of each operation.
--
-- It only adds. A program of an earlier version that is running keeps working, but sales
-- that it settles have no outcome, and it does not know the calendar.
-- +goose Up
-- There is at most one row. closed_days has a line for each day: the day, and the reason.
CREATE TABLE {{prefix}}calendars (
    calendar_id INTEGER NOT NULL CHECK (calendar_id = 1),
    closed_days TEXT NOT NULL,
    PRIMARY KEY (calendar_id)
) STRICT;

-- Only what waits for its day, or for a price, is in here, by its fund.
CREATE INDEX {{prefix}}sales_fund ON {{prefix}}sales
    (selected_date, imkb_code, holder_corporation_name, operation_id, position) WHERE state = 1;

-- What became of operations after they were answered. The transaction that ends an
-- operation takes the next number from the counter. So whoever sees a number sees all
-- smaller ones.
CREATE TABLE {{prefix}}outcomes (
    number       INTEGER NOT NULL,
    operation_id BLOB    NOT NULL,
    subscription TEXT    NOT NULL,
    caller_id    TEXT    NOT NULL DEFAULT '',
    state        INTEGER NOT NULL,
    faults       TEXT    NOT NULL DEFAULT '',
    reversed     INTEGER NOT NULL DEFAULT 0,
    ended_at     TEXT    NOT NULL,
    PRIMARY KEY (number)
) STRICT;
CREATE INDEX {{prefix}}outcomes_subscription ON {{prefix}}outcomes (subscription, number);

CREATE TABLE {{prefix}}outcome_counters (
    counter_id INTEGER NOT NULL CHECK (counter_id = 1),
    last       INTEGER NOT NULL,
    PRIMARY KEY (counter_id)
) STRICT;
INSERT INTO {{prefix}}outcome_counters (counter_id, last) VALUES (1, 0);

-- +goose Down
DROP TABLE {{prefix}}outcome_counters;
DROP TABLE {{prefix}}outcomes;
DROP INDEX {{prefix}}sales_fund;
DROP TABLE {{prefix}}calendars;
