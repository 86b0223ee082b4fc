CREATE TEMP TABLE due AS
SELECT format('01%s-0000-7000-8000-%s', lpad(to_hex(round), 6, '0'), lpad(to_hex(customer_no), 12, '0'))::uuid AS id,
    customer_no, imkb_code, holder_corporation_name
FROM size, LATERAL (SELECT * FROM holdings ORDER BY customer_no LIMIT sales) h;
