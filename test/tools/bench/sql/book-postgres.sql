-- A book with history, written straight into the service's tables, because ten
-- million requests would take hours: past sales with their transfers and
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

INSERT INTO operations (caller_id, subscription, operation, operation_id, fingerprint, state, faults)
SELECT id, 'bench', 2, id::uuid, md5(id)::uuid, 2, '' FROM past;

INSERT INTO sales (customer_no, operation_id, position, subscription, app_key, channel, teller_name, caller_id, channel_session_id, channel_request_id,
    imkb_code, holder_corporation_name, price_id, units, account_customer_no, branch_code, account_suffix, currency_code, control_total, selected_date,
    state, settled_price_id, settled_price, proceeds, refusal, received_at, settled_at, request_id)
SELECT customer_no, id::uuid, 0, 'bench', '', 'MOBILE', '', id, '', '',
    fund, 'EXAMPLE PORTFOY YONETIMI A.S.', price_id, 1000000, customer_no, 101, 351, 'TRY', 0, NULL,
    2, price_id, price, proceeds, '', received_at, received_at, request_id
FROM past;

INSERT INTO transfers (operation_id, position, customer_no, unit_quantity, account_customer_no, branch_code, account_suffix, money_quantity, posted_at,
    imkb_code, holder_corporation_name, currency_code)
SELECT id::uuid, 0, customer_no, -1000000, customer_no, 101, 351, proceeds, received_at, fund, 'EXAMPLE PORTFOY YONETIMI A.S.', 'TRY'
FROM past;

UPDATE holdings SET units = units - 1000000 * per_customer FROM size;

UPDATE accounts SET balance = balance + per_customer * ((1000000 * (1234567891 + (customer_no % 20) * 1000003) + 500000000000) / 1000000000000)
FROM size;

INSERT INTO notifications (user_id, identity, operation_id, position, subscription, app_key, channel, teller_name, caller_id, channel_session_id, channel_request_id,
    external_application_code, external_tran_code, push_id, push_interaction_id, platform, subject, content, deep_link_url, send_status, send_date, tran_data, received_at, request_id)
SELECT 'user-' || customer_no, md5(id)::uuid, replace(id, '-8000-', '-8001-')::uuid, 0, 'bench', '', 'PUSH', '', '', '', '',
    'MOBILBANK', 'FUNDSALE', id, 42, 73, 'Fon satış talimatınız gerçekleşti',
    'Sayın müşterimiz, fon satış talimatınız bugün gerçekleşmiştir. Satış tutarı hesabınıza aktarılmıştır. Ayrıntılar için uygulamamızı ziyaret edebilirsiniz.',
    'examplebank://funds/sales/latest', 1, received_at::date, '[{"Code":"FUND","Name":"F07"},{"Code":"LANG","Name":"TR"}]', received_at, 'push-' || request_id
FROM past;

-- For so many sales: 1 % more operations that were refused at once, 0.1 % more
-- sales that failed on their day, and as many that wait for one of the next 30
-- days.
CREATE TEMP VIEW spread AS
SELECT *, format('%s-%s-7000-9000-%s', substr(time, 1, 8), substr(time, 9), lpad(to_hex(n), 12, '0'))::uuid AS id
FROM (SELECT 100 * per_gap * per_customer AS rows FROM size) size, LATERAL generate_series(0, rows - 1) n,
     LATERAL (SELECT date_trunc('milliseconds', now() - interval '100 days' + n * (interval '100 days' / rows::float)) AS received_at) received,
     LATERAL (SELECT lpad(to_hex((extract(epoch FROM received_at) * 1000)::bigint), 12, '0') AS time) time;

INSERT INTO refusals (operation_id, operation, subscription, state, faults, received_at)
SELECT id, 2, 'bench', 8, 'holding-insufficient /FundAmount', received_at FROM spread;

INSERT INTO sales (customer_no, operation_id, position, subscription, imkb_code, holder_corporation_name, price_id, units,
    account_customer_no, branch_code, account_suffix, currency_code, selected_date, state, refusal, received_at, settled_at)
SELECT 10000001 + 101 * (n % 10000), id, 0, 'bench', 'F01', 'EXAMPLE PORTFOY YONETIMI A.S.', 102, 1000000,
    10000001 + 101 * (n % 10000), 101, 351, 'TRY',
    CASE WHEN fails THEN received_at::date + 1 ELSE current_date + 2 + (n / 10 % 30)::integer END,
    CASE WHEN fails THEN 8 ELSE 1 END, CASE WHEN fails THEN 'holding-insufficient' ELSE '' END,
    received_at, CASE WHEN fails THEN received_at + interval '1 day' END
FROM spread, LATERAL (SELECT n % 10 = 0 AS fails) fails
WHERE n % 5 = 0;
