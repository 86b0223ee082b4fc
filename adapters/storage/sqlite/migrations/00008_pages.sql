-- Version 8 is about pages and indexes of Postgres. SQLite looks up by the tables of
-- version 7.
-- +goose Up
SELECT 1;

-- +goose Down
SELECT 1;
