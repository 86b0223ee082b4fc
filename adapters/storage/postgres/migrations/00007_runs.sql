-- SQLite needs tables for lookups. Postgres has BRIN indexes since version 5.
-- +goose Up
SELECT 1;

-- +goose Down
SELECT 1;
