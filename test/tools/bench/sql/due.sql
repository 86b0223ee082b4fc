-- Sales whose day has come and that wait to be settled, one for each of the first
-- customers. Their day is that of the prices. The table size says how many, and which round it is.
-- The table due is that of the engine.
INSERT INTO operations (received_at, due_on, operation, state, identity, operation_id, subscription)
SELECT '2020-01-01T03:04:05.000000Z', '2020-01-02', 2, 1, id, id, 'bench' FROM due;

INSERT INTO sales (customer_no, price_id, units, account_customer_no, branch_code, account_suffix, selected_date, position, state, operation_id,
    currency_code, imkb_code, holder_corporation_name)
SELECT customer_no, 101 + customer_no % 20, 1000000, customer_no, 101, 351, '2020-01-02', 0, 1, id, 'TRY', imkb_code, holder_corporation_name
FROM due;

DROP TABLE due;
