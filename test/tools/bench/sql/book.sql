-- A book with history, written straight into the service's tables, because ten
-- million requests would take hours: past sales with their
-- CallerIds, and past pushes. They are spread over the last 100 days, in the order
-- of time. The holdings and accounts came by import; they are set to what these
-- sales left. The table size says how much: customers in each gap between the
-- customers of the bench, sales of each customer. The views past, spread and later
-- are those of the engine.
INSERT INTO operations (received_at, ended_at, operation, state, identity, operation_id, fingerprint, subscription, channel, caller_id, request_id)
SELECT received_at, received_at, 2, 2, identity, operation_id, fingerprint, 'bench', 'MOBILE', id, request_id FROM past;

INSERT INTO sales (customer_no, price_id, units, account_customer_no, branch_code, account_suffix, settled_price_id, settled_price, proceeds,
    position, state, operation_id, currency_code, imkb_code, holder_corporation_name)
SELECT customer_no, price_id, 1000000, customer_no, 101, 351, price_id, price, (1000000 * price + 500000000000) / 1000000000000,
    0, 2, operation_id, 'TRY', fund, 'EXAMPLE PORTFOY YONETIMI A.S.'
FROM past;

UPDATE holdings SET units = units - 1000000 * per_customer FROM size;

UPDATE accounts SET balance = balance + per_customer * ((1000000 * (1234567891 + (customer_no % 20) * 1000003) + 500000000000) / 1000000000000)
FROM size;

INSERT INTO operations (received_at, operation, state, identity, operation_id, subscription, channel, request_id)
SELECT received_at, 1, 2, push_operation_id, push_operation_id, 'bench', 'PUSH', 'push-' || request_id FROM past;

INSERT INTO notifications (push_interaction_id, send_date, position, platform, send_status, operation_id, identity, user_id,
    external_application_code, push_id, external_tran_code, subject, content, deep_link_url, tran_data)
SELECT 42, send_date, 0, 73, 1, push_operation_id, push_identity, 'user-' || customer_no,
    'MOBILBANK', id, 'FUNDSALE', 'Fon satış talimatınız gerçekleşti',
    'Sayın müşterimiz, fon satış talimatınız bugün gerçekleşmiştir. Satış tutarı hesabınıza aktarılmıştır. Ayrıntılar için uygulamamızı ziyaret edebilirsiniz.',
    'examplebank://funds/sales/latest', '[{"Code":"FUND","Name":"F07"},{"Code":"LANG","Name":"TR"}]'
FROM past;

-- For so many sales: 1 % more operations that were refused at once, 0.1 % more
-- sales that failed on their day, and as many that wait for one of the next 30
-- days.
INSERT INTO operations (received_at, operation, state, identity, operation_id, subscription, faults)
SELECT received_at, 2, 8, id, id, 'bench', 'holding-insufficient /Parameters/0/FundAmount' FROM spread;

INSERT INTO sales (customer_no, price_id, units, account_customer_no, branch_code, account_suffix, position, state, operation_id,
    currency_code, imkb_code, holder_corporation_name, refusal)
SELECT 10000001 + 101 * (n % 10000), 102, 1000000, 10000001 + 101 * (n % 10000), 101, 351, 0, 8, id,
    'TRY', 'F01', 'EXAMPLE PORTFOY YONETIMI A.S.', 'holding-insufficient'
FROM spread;

INSERT INTO operations (received_at, ended_at, due_on, operation, state, identity, operation_id, subscription, faults)
SELECT received_at, ended_at, due_on, 2, state, id, id, 'bench',
    CASE WHEN state = 8 THEN 'holding-insufficient /Parameters/0/FundAmount' ELSE '' END
FROM later;

INSERT INTO sales (customer_no, price_id, units, account_customer_no, branch_code, account_suffix, selected_date, position, state, operation_id,
    currency_code, imkb_code, holder_corporation_name, refusal)
SELECT 10000001 + 101 * (n % 10000), 102, 1000000, 10000001 + 101 * (n % 10000), 101, 351, due_on, 0, state, id,
    'TRY', 'F01', 'EXAMPLE PORTFOY YONETIMI A.S.', CASE WHEN state = 8 THEN 'holding-insufficient' ELSE '' END
FROM later;

INSERT INTO outcomes (number, operation_id, subscription)
SELECT row_number() OVER (ORDER BY id), id, 'bench' FROM later WHERE state = 8;

UPDATE properties SET value = CAST((SELECT count(*) FROM outcomes) AS text) WHERE name = 'outcomes';
