-- The sales that failed on their day, for the console: they are few among many
-- that completed.
-- +goose Up
CREATE INDEX {{prefix}}sales_failed ON {{prefix}}sales (operation_id, position) WHERE state = 8;

-- +goose Down
DROP INDEX {{prefix}}sales_failed;
