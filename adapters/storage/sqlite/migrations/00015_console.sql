-- What the console asks for: the sales that were settled on a day, by their outcomes, and
-- the requests that were answered 5xx among many repeats. Only what ends after it was
-- answered has an outcome, and only errors and repeats are in requests. So a sale of today
-- and a message pay nothing. It only adds: a program of version 14 that is running keeps
-- working.
-- +goose Up
CREATE INDEX {{prefix}}outcomes_ended ON {{prefix}}outcomes (ended_at);
CREATE INDEX {{prefix}}requests_class ON {{prefix}}requests ((status / 100), entry_id);

-- +goose Down
DROP INDEX {{prefix}}requests_class;
DROP INDEX {{prefix}}outcomes_ended;
