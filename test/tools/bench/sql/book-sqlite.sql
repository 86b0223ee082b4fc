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

INSERT INTO operations (received_at, ended_at, operation, state, identity, operation_id, fingerprint, subscription, channel, caller_id, request_id)
SELECT received_at, received_at, 2, 2, unhex(replace(id, '-8000-', '-8002-'), '-'), unhex(id, '-'), unhex(id || id, '-'), 'bench', 'MOBILE', id, request_id FROM past;

INSERT INTO sales (customer_no, price_id, units, account_customer_no, branch_code, account_suffix, settled_price_id, settled_price, proceeds,
    position, state, operation_id, currency_code, imkb_code, holder_corporation_name)
SELECT customer_no, price_id, 1000000, customer_no, 101, 351, price_id, price, proceeds,
    0, 2, unhex(id, '-'), 'TRY', fund, 'EXAMPLE PORTFOY YONETIMI A.S.'
FROM past;

UPDATE holdings SET units = units - 1000000 * per_customer FROM size;

UPDATE accounts SET balance = balance + per_customer * ((1000000 * (1234567891 + (customer_no % 20) * 1000003) + 500000000000) / 1000000000000)
FROM size;

INSERT INTO operations (received_at, operation, state, identity, operation_id, subscription, channel, request_id)
SELECT received_at, 1, 2, unhex(replace(id, '-8000-', '-8001-'), '-'), unhex(replace(id, '-8000-', '-8001-'), '-'), 'bench', 'PUSH', 'push-' || request_id
FROM past;

INSERT INTO notifications (push_interaction_id, send_date, position, platform, send_status, operation_id, identity, user_id,
    external_application_code, push_id, external_tran_code, subject, content, deep_link_url, tran_data)
SELECT 42, substr(received_at, 1, 10), 0, 73, 1, unhex(replace(id, '-8000-', '-8001-'), '-'), unhex(id, '-'), 'user-' || customer_no,
    'MOBILBANK', id, 'FUNDSALE', 'Fon satış talimatınız gerçekleşti',
    'Sayın müşterimiz, fon satış talimatınız bugün gerçekleşmiştir. Satış tutarı hesabınıza aktarılmıştır. Ayrıntılar için uygulamamızı ziyaret edebilirsiniz.',
    'examplebank://funds/sales/latest', '[{"Code":"FUND","Name":"F07"},{"Code":"LANG","Name":"TR"}]'
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
    unhex(printf('%012x70009000%012x', milliseconds, n)) AS id, unhex(printf('%012x7000a000%012x', milliseconds, n)) AS later_id
FROM timed;

INSERT INTO operations (received_at, operation, state, identity, operation_id, subscription, faults)
SELECT received_at, 2, 8, id, id, 'bench', 'holding-insufficient /Parameters/0/FundAmount' FROM spread;

INSERT INTO sales (customer_no, price_id, units, account_customer_no, branch_code, account_suffix, position, state, operation_id,
    currency_code, imkb_code, holder_corporation_name, refusal)
SELECT 10000001 + 101 * (n % 10000), 102, 1000000, 10000001 + 101 * (n % 10000), 101, 351, 0, 8, id,
    'TRY', 'F01', 'EXAMPLE PORTFOY YONETIMI A.S.', 'holding-insufficient'
FROM spread;

CREATE TEMP VIEW later AS
SELECT n, fails, second, received_at, later_id AS id, iif(fails, 8, 1) AS state,
    iif(fails, date(second, 'unixepoch', '+1 day'), date('now', printf('+%d days', 2 + n / 10 % 30))) AS due_on
FROM spread
WHERE n % 5 = 0;

INSERT INTO operations (received_at, ended_at, due_on, operation, state, identity, operation_id, subscription, faults)
SELECT received_at, iif(fails, strftime('%Y-%m-%dT%H:%M:%S.000000Z', second, 'unixepoch', '+1 day'), NULL), due_on, 2, state, id, id, 'bench',
    iif(fails, 'holding-insufficient /Parameters/0/FundAmount', '')
FROM later;

INSERT INTO sales (customer_no, price_id, units, account_customer_no, branch_code, account_suffix, selected_date, position, state, operation_id,
    currency_code, imkb_code, holder_corporation_name, refusal)
SELECT 10000001 + 101 * (n % 10000), 102, 1000000, 10000001 + 101 * (n % 10000), 101, 351, due_on, 0, state, id,
    'TRY', 'F01', 'EXAMPLE PORTFOY YONETIMI A.S.', iif(fails, 'holding-insufficient', '')
FROM later;

INSERT INTO outcomes (number, operation_id, subscription)
SELECT row_number() OVER (ORDER BY id), id, 'bench' FROM later WHERE state = 8;

UPDATE properties SET value = CAST((SELECT count(*) FROM outcomes) AS text) WHERE name = 'outcomes';
