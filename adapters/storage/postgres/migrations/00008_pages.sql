-- How full pages are, and what finds a value in many of them.
--
-- While a page is fuller than the fillfactor of its table, the server cleans it at each
-- look at it. Pages of holdings and accounts are half empty when they are imported, so
-- with a fillfactor of 50 that was after each sale. Imports set 50 for themselves now.
-- Pages of sales keep room, so that most due sales stay where they are when they are
-- settled. One that moves leaves a gap, and the next row in this gap writes the filter of
-- its range, which is longer than the row.
--
-- The BRIN indexes of version 5 have the Bloom filters of two columns in each row. A
-- lookup reads both, and a change of one value writes both. Now each column has its own
-- index. The filter is its first column: in almost every range of pages it excludes the
-- value, and the other column is not compared. A range of customers has 16 pages: with
-- 32, a filter is twice as long, and with 8, a lookup reads too many of them.
-- Notifications do not change, so their ranges are as long as fits. Rows without an
-- X-Request-Id are in no index for it.
--
-- Building the indexes reads sales and notifications twice, and writes to these tables
-- wait for it. To avoid that in a large book, build them before with CREATE INDEX
-- CONCURRENTLY, as they stand here: the migration leaves those that exist. A program of
-- version 7 that is running keeps working, and its lookups use the new indexes. No row
-- moves. Partitions keep their fillfactor.
-- +goose Up
-- +goose StatementBegin
DO $$
BEGIN
    IF (SELECT relkind FROM pg_class WHERE oid = to_regclass('{{prefix}}sales')) = 'r' THEN
        ALTER TABLE {{prefix}}sales SET (fillfactor = 95);
        ALTER TABLE {{prefix}}holdings SET (fillfactor = 90);
        ALTER TABLE {{prefix}}accounts SET (fillfactor = 90);
    END IF;
EXCEPTION WHEN feature_not_supported OR invalid_parameter_value OR wrong_object_type THEN
    RAISE NOTICE 'the pages of partitions are as full as before, and those of a server without fillfactor';
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
DO $$
BEGIN
    CREATE INDEX IF NOT EXISTS {{prefix}}sales_customer ON {{prefix}}sales USING brin
        (customer_no int8_bloom_ops (false_positive_rate = 0.001), operation_id)
        WITH (autosummarize = on, pages_per_range = 16);
    CREATE INDEX IF NOT EXISTS {{prefix}}sales_request ON {{prefix}}sales USING brin
        (request_id text_bloom_ops (false_positive_rate = 0.001), operation_id)
        WITH (autosummarize = on, pages_per_range = 32) WHERE request_id <> '';
    CREATE INDEX IF NOT EXISTS {{prefix}}notifications_push ON {{prefix}}notifications USING brin
        (push_id text_bloom_ops (false_positive_rate = 0.001), operation_id)
        WITH (autosummarize = on, pages_per_range = 64);
    CREATE INDEX IF NOT EXISTS {{prefix}}notifications_request ON {{prefix}}notifications USING brin
        (request_id text_bloom_ops (false_positive_rate = 0.001), operation_id)
        WITH (autosummarize = on, pages_per_range = 64) WHERE request_id <> '';
EXCEPTION WHEN feature_not_supported OR undefined_object OR invalid_parameter_value THEN
    RAISE NOTICE 'this server has no BRIN indexes with bloom filters: lookups of a customer read whole tables';
END $$;
-- +goose StatementEnd
DROP INDEX IF EXISTS {{prefix}}notifications_find;
DROP INDEX IF EXISTS {{prefix}}sales_find;

-- +goose Down
DROP INDEX IF EXISTS {{prefix}}notifications_request;
DROP INDEX IF EXISTS {{prefix}}notifications_push;
DROP INDEX IF EXISTS {{prefix}}sales_request;
DROP INDEX IF EXISTS {{prefix}}sales_customer;
-- +goose StatementBegin
DO $$
BEGIN
    CREATE INDEX {{prefix}}sales_find ON {{prefix}}sales USING brin
        (operation_id, customer_no int8_bloom_ops (false_positive_rate = 0.001), request_id text_bloom_ops (false_positive_rate = 0.001))
        WITH (autosummarize = on, pages_per_range = 32);
    CREATE INDEX {{prefix}}notifications_find ON {{prefix}}notifications USING brin
        (operation_id, push_id text_bloom_ops (false_positive_rate = 0.001), request_id text_bloom_ops (false_positive_rate = 0.001))
        WITH (autosummarize = on, pages_per_range = 32);
EXCEPTION WHEN feature_not_supported OR undefined_object OR invalid_parameter_value THEN
    NULL;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
DO $$
BEGIN
    IF (SELECT relkind FROM pg_class WHERE oid = to_regclass('{{prefix}}sales')) = 'r' THEN
        ALTER TABLE {{prefix}}sales RESET (fillfactor);
        ALTER TABLE {{prefix}}holdings SET (fillfactor = 50);
        ALTER TABLE {{prefix}}accounts SET (fillfactor = 50);
    END IF;
EXCEPTION WHEN feature_not_supported OR invalid_parameter_value OR wrong_object_type THEN
    NULL;
END $$;
-- +goose StatementEnd
