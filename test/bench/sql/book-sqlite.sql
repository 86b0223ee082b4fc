-- sql/book-postgres.sql in SQLite's words.
CREATE TEMP TABLE customer AS
WITH RECURSIVE gap (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM gap WHERE i < 9999),
    place (j) AS (SELECT 0 UNION ALL SELECT j + 1 FROM place, size WHERE j < per_gap - 1)
SELECT 10000001 + 101 * i + j AS c FROM gap, place;

CREATE TEMP VIEW past AS
WITH RECURSIVE sale (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM sale, size WHERE n < per_customer)
SELECT c AS customer_no, n, printf('F%02d', c % 20) AS fund, 101 + c % 20 AS price_id, 1234567891 + (c % 20) * 1000003 AS price,
       (1000000 * (1234567891 + (c % 20) * 1000003) + 500000000000) / 1000000000000 AS proceeds,
       printf('01900%03x-0000-7000-8000-%012x', n, c) AS id
FROM customer, sale;

INSERT INTO operations (caller_id, subscription, operation, operation_id, fingerprint, state, faults)
SELECT id, 'bench', 2, unhex(id, '-'), unhex(id || id, '-'), 2, '' FROM past;

INSERT INTO sales (customer_no, operation_id, position, subscription, app_key, channel, teller_name, caller_id, channel_session_id, channel_request_id,
    imkb_code, holder_corporation_name, price_id, units, account_customer_no, branch_code, account_suffix, currency_code, control_total, selected_date,
    state, settled_price_id, settled_price, proceeds, refusal, received_at, settled_at)
SELECT customer_no, unhex(id, '-'), 0, 'bench', '', 'MOBILE', '', id, '', '',
    fund, 'EXAMPLE PORTFOY YONETIMI A.S.', price_id, 1000000, customer_no, 101, 351, 'TRY', 0, NULL,
    2, price_id, price, proceeds, '', '2026-01-02T03:04:05.000000Z', '2026-01-02T03:04:05.000000Z'
FROM past;

INSERT INTO postings (customer_no, operation_id, position, leg, kind, imkb_code, holder_corporation_name, branch_code, account_suffix, currency_code, quantity, posted_at)
SELECT customer_no, unhex(id, '-'), 0, leg, 1,
    CASE leg WHEN 1 THEN fund ELSE '' END, CASE leg WHEN 1 THEN 'EXAMPLE PORTFOY YONETIMI A.S.' ELSE '' END,
    CASE leg WHEN 2 THEN 101 ELSE 0 END, CASE leg WHEN 2 THEN 351 ELSE 0 END, CASE leg WHEN 2 THEN 'TRY' ELSE '' END,
    CASE leg WHEN 1 THEN -1000000 ELSE proceeds END, '2026-01-02T03:04:05.000000Z'
FROM past, (SELECT 1 AS leg UNION ALL SELECT 2);

UPDATE holdings SET units = units - 1000000 * per_customer FROM size;

UPDATE accounts SET balance = balance + per_customer * ((1000000 * (1234567891 + (customer_no % 20) * 1000003) + 500000000000) / 1000000000000)
FROM size;

INSERT INTO notifications (user_id, digest, operation_id, position, subscription, app_key, channel, teller_name, caller_id, channel_session_id, channel_request_id,
    external_application_code, external_tran_code, push_id, push_interaction_id, platform, subject, content, deep_link_url, send_status, send_date, tran_data, received_at)
SELECT 'user-' || customer_no, unhex(id || id, '-'), unhex(id, '-'), 0, 'bench', '', 'PUSH', '', '', '', '',
    'MOBILBANK', 'FUNDSALE', id, 42, 73, 'Fon satış talimatınız gerçekleşti',
    'Sayın müşterimiz, fon satış talimatınız bugün gerçekleşmiştir. Satış tutarı hesabınıza aktarılmıştır. Ayrıntılar için uygulamamızı ziyaret edebilirsiniz.',
    'examplebank://funds/sales/latest', 1, '2026-01-02', '[{"Code":"FUND","Name":"F07"},{"Code":"LANG","Name":"TR"}]', '2026-01-02T03:04:05.000000Z'
FROM past;
