CREATE TEMP TABLE due AS
SELECT unhex(printf('01910%03x-0000-7000-8000-%012x', round, customer_no), '-') AS id, customer_no, imkb_code, holder_corporation_name
FROM size, holdings
ORDER BY customer_no
LIMIT (SELECT sales FROM size);
