-- The newest notifications, for the console. The BRIN index of version 5 finds them
-- too, but has a filter for each range of pages, and all of it is read. SQLite has
-- this index since version 5, and gets tables for lookups in this version.
--
-- It only adds. A program of version 6 that is running keeps working. Building the
-- index reads notifications once, and writes to them wait for it.
-- +goose Up
CREATE INDEX {{prefix}}notifications_operation ON {{prefix}}notifications (operation_id);

-- +goose Down
DROP INDEX {{prefix}}notifications_operation;
