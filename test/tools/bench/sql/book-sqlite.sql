-- sql/book-postgres.sql in SQLite's words.
CREATE TEMP TABLE clock AS SELECT unixepoch() - 100 * 86400 AS start;

CREATE TEMP VIEW past AS
WITH RECURSIVE bounds AS (SELECT *, 10000 * per_gap AS customers FROM size, clock),
    numbered (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbered, bounds WHERE n < customers * per_customer - 1),
    timed AS (
        SELECT n, 10000001 + 101 * (n % customers / per_gap) + n % per_gap AS c,
            start * 1000 + n * 8640000000 / (customers * per_customer) AS milliseconds
        FROM numbered, bounds
    ),
    named AS (SELECT *, printf('%012x', milliseconds) AS time FROM timed)
SELECT c AS customer_no, printf('F%02d', c % 20) AS fund, 101 + c % 20 AS price_id, 1234567891 + (c % 20) * 1000003 AS price,
       (1000000 * (1234567891 + (c % 20) * 1000003) + 500000000000) / 1000000000000 AS proceeds,
       strftime('%Y-%m-%dT%H:%M:%S', milliseconds / 1000, 'unixepoch') || printf('.%03d000Z', milliseconds % 1000) AS received_at,
       printf('%s-%s-7000-8000-%012x', substr(time, 1, 8), substr(time, 9), c) AS id,
       'request-' || n AS request_id
FROM named;

INSERT INTO operations (caller_id, subscription, operation, operation_id, fingerprint, state, faults)
SELECT id, 'bench', 2, unhex(id, '-'), unhex(id, '-'), 2, '' FROM past;

INSERT INTO sales (customer_no, operation_id, position, subscription, app_key, channel, teller_name, caller_id, channel_session_id, channel_request_id,
    imkb_code, holder_corporation_name, price_id, units, account_customer_no, branch_code, account_suffix, currency_code, control_total, selected_date,
    state, settled_price_id, settled_price, proceeds, refusal, received_at, settled_at, request_id)
SELECT customer_no, unhex(id, '-'), 0, 'bench', '', 'MOBILE', '', id, '', '',
    fund, 'EXAMPLE PORTFOY YONETIMI A.S.', price_id, 1000000, customer_no, 101, 351, 'TRY', 0, NULL,
    2, price_id, price, proceeds, '', received_at, received_at, request_id
FROM past;

INSERT INTO transfers (operation_id, position, customer_no, unit_quantity, account_customer_no, branch_code, account_suffix, money_quantity, posted_at,
    imkb_code, holder_corporation_name, currency_code)
SELECT unhex(id, '-'), 0, customer_no, -1000000, customer_no, 101, 351, proceeds, received_at, fund, 'EXAMPLE PORTFOY YONETIMI A.S.', 'TRY'
FROM past;

UPDATE holdings SET units = units - 1000000 * per_customer FROM size;

UPDATE accounts SET balance = balance + per_customer * ((1000000 * (1234567891 + (customer_no % 20) * 1000003) + 500000000000) / 1000000000000)
FROM size;

INSERT INTO notifications (user_id, identity, operation_id, position, subscription, app_key, channel, teller_name, caller_id, channel_session_id, channel_request_id,
    external_application_code, external_tran_code, push_id, push_interaction_id, platform, subject, content, deep_link_url, send_status, send_date, tran_data, received_at, request_id)
SELECT 'user-' || customer_no, unhex(id, '-'), unhex(replace(id, '-8000-', '-8001-'), '-'), 0, 'bench', '', 'PUSH', '', '', '', '',
    'MOBILBANK', 'FUNDSALE', id, 42, 73, 'Fon satış talimatınız gerçekleşti',
    'Sayın müşterimiz, fon satış talimatınız bugün gerçekleşmiştir. Satış tutarı hesabınıza aktarılmıştır. Ayrıntılar için uygulamamızı ziyaret edebilirsiniz.',
    'examplebank://funds/sales/latest', 1, substr(received_at, 1, 10), '[{"Code":"FUND","Name":"F07"},{"Code":"LANG","Name":"TR"}]', received_at, 'push-' || request_id
FROM past;

CREATE TEMP VIEW spread AS
WITH RECURSIVE bounds AS (SELECT 100 * per_gap * per_customer AS rows, start FROM size, clock),
    numbered (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbered, bounds WHERE n < rows - 1),
    timed AS (
        SELECT n, start * 1000 + n * 8640000000 / rows AS milliseconds
        FROM numbered, bounds
    )
SELECT n, n % 10 = 0 AS fails, milliseconds / 1000 AS second,
    strftime('%Y-%m-%dT%H:%M:%S', milliseconds / 1000, 'unixepoch') || printf('.%03d000Z', milliseconds % 1000) AS received_at,
    unhex(printf('%012x70009000%012x', milliseconds, n)) AS id
FROM timed;

INSERT INTO refusals (operation_id, operation, subscription, state, faults, received_at)
SELECT id, 2, 'bench', 8, 'holding-insufficient /FundAmount', received_at FROM spread;

INSERT INTO sales (customer_no, operation_id, position, subscription, imkb_code, holder_corporation_name, price_id, units,
    account_customer_no, branch_code, account_suffix, currency_code, selected_date, state, refusal, received_at, settled_at)
SELECT 10000001 + 101 * (n % 10000), id, 0, 'bench', 'F01', 'EXAMPLE PORTFOY YONETIMI A.S.', 102, 1000000,
    10000001 + 101 * (n % 10000), 101, 351, 'TRY',
    iif(fails, date(second, 'unixepoch', '+1 day'), date('now', printf('+%d days', 2 + n / 10 % 30))),
    iif(fails, 8, 1), iif(fails, 'holding-insufficient', ''),
    received_at, iif(fails, strftime('%Y-%m-%dT%H:%M:%S.000000Z', second, 'unixepoch', '+1 day'), NULL)
FROM spread
WHERE n % 5 = 0;
