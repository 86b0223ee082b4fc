-- Sales whose day has come and that wait to be settled, one for each of the first
-- customers. The table size says how many, and which round it is.
INSERT INTO sales (customer_no, operation_id, position, subscription, imkb_code, holder_corporation_name, price_id, units,
    account_customer_no, branch_code, account_suffix, currency_code, selected_date, state, received_at)
SELECT customer_no, format('01%s-0000-7000-8000-%s', lpad(to_hex(round), 6, '0'), lpad(to_hex(customer_no), 12, '0'))::uuid, 0, 'bench',
    imkb_code, holder_corporation_name, 101 + customer_no % 20, 1000000,
    customer_no, 101, 351, 'TRY', '2020-01-02', 1, '2026-01-02 03:04:05Z'
FROM size, LATERAL (SELECT * FROM holdings ORDER BY customer_no LIMIT sales) h;

INSERT INTO operations (received_at, due_on, operation, state, identity, operation_id, subscription)
SELECT s.received_at, s.selected_date, 2, 1, s.operation_id, s.operation_id, s.subscription
FROM sales s WHERE s.state = 1 AND NOT EXISTS (SELECT 1 FROM operations o WHERE o.operation_id = s.operation_id);
