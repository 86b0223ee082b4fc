-- One customer, request or push among ten million rows. The indexes of version 2
-- had no column in the order of the table. Without one, the planner believes that
-- a value is in every range of pages, and reads the table.
--
-- It only changes indexes: a program of version 2 that is running keeps working,
-- but its lookups read whole tables. Building them reads sales, postings and
-- notifications once, and writes to these tables wait for it.
--
-- Lookups add operation_id >= the zero ID, which every row has, so that the
-- planner sees that column. The filters are for 29 different values a page. The
-- index row of a range must fit into a page.
--
-- Sales lead to their own postings. So the postings of sales, which are most, are
-- in no index for customers: a B-tree finds the others. Another one finds the sales
-- that went to another customer's account.
-- +goose Up
DROP INDEX IF EXISTS {{prefix}}notifications_find;
DROP INDEX IF EXISTS {{prefix}}postings_find;
DROP INDEX IF EXISTS {{prefix}}sales_find;
CREATE INDEX {{prefix}}sales_account ON {{prefix}}sales (account_customer_no) WHERE account_customer_no <> customer_no;
CREATE INDEX {{prefix}}postings_customer ON {{prefix}}postings (customer_no) WHERE kind <> 1;
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
    RAISE NOTICE 'this server has no BRIN indexes with bloom filters: lookups of a customer read whole tables';
END $$;
-- +goose StatementEnd

-- +goose Down
DROP INDEX IF EXISTS {{prefix}}notifications_find;
DROP INDEX IF EXISTS {{prefix}}sales_find;
DROP INDEX {{prefix}}postings_customer;
DROP INDEX {{prefix}}sales_account;
-- +goose StatementBegin
DO $$
BEGIN
    CREATE INDEX {{prefix}}sales_find ON {{prefix}}sales USING brin
        (customer_no int8_bloom_ops, account_customer_no int8_bloom_ops, request_id text_bloom_ops) WITH (autosummarize = on, pages_per_range = 32);
    CREATE INDEX {{prefix}}postings_find ON {{prefix}}postings USING brin
        (customer_no int8_bloom_ops, posted_at) WITH (autosummarize = on);
    CREATE INDEX {{prefix}}notifications_find ON {{prefix}}notifications USING brin
        (operation_id, push_id text_bloom_ops, request_id text_bloom_ops) WITH (autosummarize = on, pages_per_range = 32);
EXCEPTION WHEN feature_not_supported OR undefined_object OR invalid_parameter_value THEN
    NULL;
END $$;
-- +goose StatementEnd
