-- The life of a sale for a later day: the days on which the bank is closed, the funds
-- whose sales wait for a price, and what became of each operation.
--
-- It only adds. A program of an earlier version that is running keeps working, but sales
-- that it settles have no outcome, and it does not know the calendar. So switch
-- http.outcomes on, and import a calendar, when it has ended. Building the index reads
-- sales once, and writes to sales wait for it. To avoid that in a large book, build it
-- before with CREATE INDEX CONCURRENTLY, as it stands here: the migration leaves it.
-- +goose Up
-- There is at most one row. closed_days has a line for each day: the day, and the reason.
CREATE TABLE {{prefix}}calendars (
    calendar_id bigint NOT NULL CHECK (calendar_id = 1),
    closed_days text NOT NULL,
    PRIMARY KEY (calendar_id)
);

-- Only what waits for its day, or for a price, is in here, by its fund.
CREATE INDEX IF NOT EXISTS {{prefix}}sales_fund ON {{prefix}}sales
    (selected_date, imkb_code, holder_corporation_name, operation_id, position) WHERE state = 1;

-- What became of operations after they were answered. The transaction that ends an
-- operation takes the next number from the counter, whose row it locks until it has
-- committed. So whoever sees a number sees all smaller ones.
CREATE TABLE {{prefix}}outcomes (
    number       bigint      NOT NULL,
    operation_id uuid        NOT NULL,
    subscription text COLLATE "C" NOT NULL,
    caller_id    text        NOT NULL DEFAULT '',
    state        bigint      NOT NULL,
    faults       text        NOT NULL DEFAULT '',
    reversed     bigint      NOT NULL DEFAULT 0,
    ended_at     timestamptz NOT NULL,
    PRIMARY KEY (number)
);
CREATE INDEX {{prefix}}outcomes_subscription ON {{prefix}}outcomes (subscription, number);

CREATE TABLE {{prefix}}outcome_counters (
    counter_id bigint NOT NULL CHECK (counter_id = 1),
    last       bigint NOT NULL,
    PRIMARY KEY (counter_id)
);
INSERT INTO {{prefix}}outcome_counters (counter_id, last) VALUES (1, 0);

-- +goose Down
DROP TABLE {{prefix}}outcome_counters;
DROP TABLE {{prefix}}outcomes;
DROP INDEX {{prefix}}sales_fund;
DROP TABLE {{prefix}}calendars;
