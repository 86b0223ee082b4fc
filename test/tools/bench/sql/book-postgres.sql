-- A book with history, written straight into the service's tables, because ten
-- million requests would take hours: past sales with their
-- CallerIds, and past pushes. They are spread over the last 100 days, in the order
-- of time. The holdings and accounts came by import; they are set to what these
-- sales left. The table size says how much: customers in each gap between the
-- customers of the bench, sales of each customer.
CREATE TEMP VIEW past AS
SELECT c AS customer_no, 'F' || lpad((c % 20)::text, 2, '0') AS fund, 101 + c % 20 AS price_id, price,
       (1000000::bigint * price + 500000000000) / 1000000000000 AS proceeds, received_at,
       format('%s-%s-7000-8000-%s', substr(time, 1, 8), substr(time, 9), lpad(to_hex(c), 12, '0')) AS id,
       'request-' || n AS request_id
FROM (SELECT *, 10000::bigint * per_gap AS customers FROM size) size,
     LATERAL generate_series(0, customers * per_customer - 1) n,
     LATERAL (SELECT 10000001 + 101 * (n % customers / per_gap) + n % per_gap AS c) customer,
     LATERAL (SELECT 1234567891 + (c % 20) * 1000003::bigint AS price) price,
     LATERAL (SELECT date_trunc('milliseconds', now() - interval '100 days' + n * (interval '100 days' / (customers * per_customer)::float)) AS received_at) received,
     LATERAL (SELECT lpad(to_hex((extract(epoch FROM received_at) * 1000)::bigint), 12, '0') AS time) time;

INSERT INTO operations (received_at, ended_at, operation, state, identity, operation_id, fingerprint, subscription, channel, caller_id, request_id)
SELECT received_at, received_at, 2, 2, md5('caller ' || id)::uuid, id::uuid, decode(md5(id) || md5(id), 'hex'), 'bench', 'MOBILE', id, request_id FROM past;

INSERT INTO sales (customer_no, price_id, units, account_customer_no, branch_code, account_suffix, settled_price_id, settled_price, proceeds,
    position, state, operation_id, currency_code, imkb_code, holder_corporation_name)
SELECT customer_no, price_id, 1000000, customer_no, 101, 351, price_id, price, proceeds,
    0, 2, id::uuid, 'TRY', fund, 'EXAMPLE PORTFOY YONETIMI A.S.'
FROM past;

UPDATE holdings SET units = units - 1000000 * per_customer FROM size;

UPDATE accounts SET balance = balance + per_customer * ((1000000 * (1234567891 + (customer_no % 20) * 1000003) + 500000000000) / 1000000000000)
FROM size;

INSERT INTO operations (received_at, operation, state, identity, operation_id, subscription, channel, request_id)
SELECT received_at, 1, 2, push_id, push_id, 'bench', 'PUSH', 'push-' || request_id
FROM past, LATERAL (SELECT replace(id, '-8000-', '-8001-')::uuid AS push_id) push;

INSERT INTO notifications (push_interaction_id, send_date, position, platform, send_status, operation_id, identity, user_id,
    external_application_code, push_id, external_tran_code, subject, content, deep_link_url, tran_data)
SELECT 42, received_at::date, 0, 73, 1, replace(id, '-8000-', '-8001-')::uuid, md5(id)::uuid, 'user-' || customer_no,
    'MOBILBANK', id, 'FUNDSALE', 'Fon satış talimatınız gerçekleşti',
    'Sayın müşterimiz, fon satış talimatınız bugün gerçekleşmiştir. Satış tutarı hesabınıza aktarılmıştır. Ayrıntılar için uygulamamızı ziyaret edebilirsiniz.',
    'examplebank://funds/sales/latest', '[{"Code":"FUND","Name":"F07"},{"Code":"LANG","Name":"TR"}]'
FROM past;

-- For so many sales: 1 % more operations that were refused at once, 0.1 % more
-- sales that failed on their day, and as many that wait for one of the next 30
-- days.
CREATE TEMP VIEW spread AS
SELECT *, format('%s-%s-7000-9000-%s', substr(time, 1, 8), substr(time, 9), lpad(to_hex(n), 12, '0'))::uuid AS id
FROM (SELECT 100 * per_gap * per_customer AS rows FROM size) size, LATERAL generate_series(0, rows - 1) n,
     LATERAL (SELECT date_trunc('milliseconds', now() - interval '100 days' + n * (interval '100 days' / rows::float)) AS received_at) received,
     LATERAL (SELECT lpad(to_hex((extract(epoch FROM received_at) * 1000)::bigint), 12, '0') AS time) time;

INSERT INTO operations (received_at, operation, state, identity, operation_id, subscription, faults)
SELECT received_at, 2, 8, id, id, 'bench', 'holding-insufficient /Parameters/0/FundAmount' FROM spread;

INSERT INTO sales (customer_no, price_id, units, account_customer_no, branch_code, account_suffix, position, state, operation_id,
    currency_code, imkb_code, holder_corporation_name, refusal)
SELECT 10000001 + 101 * (n % 10000), 102, 1000000, 10000001 + 101 * (n % 10000), 101, 351, 0, 8, id,
    'TRY', 'F01', 'EXAMPLE PORTFOY YONETIMI A.S.', 'holding-insufficient'
FROM spread;

CREATE TEMP VIEW later AS
SELECT n, fails, received_at, replace(id::text, '-9000-', '-a000-')::uuid AS id,
    CASE WHEN fails THEN received_at::date + 1 ELSE current_date + 2 + (n / 10 % 30)::integer END AS due_on,
    CASE WHEN fails THEN 8 ELSE 1 END AS state
FROM spread, LATERAL (SELECT n % 10 = 0 AS fails) fails
WHERE n % 5 = 0;

INSERT INTO operations (received_at, ended_at, due_on, operation, state, identity, operation_id, subscription, faults)
SELECT received_at, CASE WHEN fails THEN received_at + interval '1 day' END, due_on, 2, state, id, id, 'bench',
    CASE WHEN fails THEN 'holding-insufficient /Parameters/0/FundAmount' ELSE '' END
FROM later;

INSERT INTO sales (customer_no, price_id, units, account_customer_no, branch_code, account_suffix, selected_date, position, state, operation_id,
    currency_code, imkb_code, holder_corporation_name, refusal)
SELECT 10000001 + 101 * (n % 10000), 102, 1000000, 10000001 + 101 * (n % 10000), 101, 351, due_on, 0, state, id,
    'TRY', 'F01', 'EXAMPLE PORTFOY YONETIMI A.S.', CASE WHEN fails THEN 'holding-insufficient' ELSE '' END
FROM later;

INSERT INTO outcomes (number, operation_id, subscription)
SELECT row_number() OVER (ORDER BY id), id, 'bench' FROM later WHERE state = 8;

UPDATE properties SET value = CAST((SELECT count(*) FROM outcomes) AS text) WHERE name = 'outcomes';
