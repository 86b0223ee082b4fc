-- sql/due-postgres.sql in SQLite's words.
INSERT INTO sales (customer_no, operation_id, position, subscription, imkb_code, holder_corporation_name, price_id, units,
    account_customer_no, branch_code, account_suffix, currency_code, selected_date, state, received_at)
SELECT customer_no, unhex(printf('01910%03x-0000-7000-8000-%012x', round, customer_no), '-'), 0, 'bench',
    imkb_code, holder_corporation_name, 101 + customer_no % 20, 1000000,
    customer_no, 101, 351, 'TRY', '2020-01-02', 1, '2026-01-02T03:04:05.000000Z'
FROM size, holdings
ORDER BY customer_no
LIMIT (SELECT sales FROM size);
