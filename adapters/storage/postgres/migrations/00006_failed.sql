-- The sales that failed on their day, for the console: they are few among many
-- that completed. It only adds. A program of version 5 that is running keeps
-- working. Building the index reads sales once, and writes to sales wait for it.
-- +goose Up
CREATE INDEX {{prefix}}sales_failed ON {{prefix}}sales (operation_id, position) WHERE state = 8;

-- +goose Down
DROP INDEX {{prefix}}sales_failed;
