-- What book.sql inserts, in the types of Postgres.
CREATE TEMP VIEW past AS
SELECT c AS customer_no, 'F' || lpad((c % 20)::text, 2, '0') AS fund, 101 + c % 20 AS price_id,
       1234567891 + (c % 20) * 1000003::bigint AS price, received_at, received_at::date AS send_date,
       id, id::uuid AS operation_id, md5('caller ' || id)::uuid AS identity, decode(md5(id) || md5(id), 'hex') AS fingerprint,
       replace(id, '-8000-', '-8001-')::uuid AS push_operation_id, md5(id)::uuid AS push_identity, 'request-' || n AS request_id
FROM (SELECT *, 10000::bigint * per_gap AS customers FROM size) size,
     LATERAL generate_series(0, customers * per_customer - 1) n,
     LATERAL (SELECT 10000001 + 101 * (n % customers / per_gap) + n % per_gap AS c) customer,
     LATERAL (SELECT date_trunc('milliseconds', now() - interval '100 days' + n * (interval '100 days' / (customers * per_customer)::float)) AS received_at) received,
     LATERAL (SELECT lpad(to_hex((extract(epoch FROM received_at) * 1000)::bigint), 12, '0') AS time) time,
     LATERAL (SELECT format('%s-%s-7000-8000-%s', substr(time, 1, 8), substr(time, 9), lpad(to_hex(c), 12, '0')) AS id) id;

CREATE TEMP VIEW spread AS
SELECT n, received_at, format('%s-%s-7000-9000-%s', substr(time, 1, 8), substr(time, 9), lpad(to_hex(n), 12, '0'))::uuid AS id
FROM (SELECT 100 * per_gap * per_customer AS rows FROM size) size, LATERAL generate_series(0, rows - 1) n,
     LATERAL (SELECT date_trunc('milliseconds', now() - interval '100 days' + n * (interval '100 days' / rows::float)) AS received_at) received,
     LATERAL (SELECT lpad(to_hex((extract(epoch FROM received_at) * 1000)::bigint), 12, '0') AS time) time;

CREATE TEMP VIEW later AS
SELECT n, received_at, replace(id::text, '-9000-', '-a000-')::uuid AS id, CASE WHEN fails THEN 8 ELSE 1 END AS state,
    CASE WHEN fails THEN received_at::date + 1 ELSE current_date + 2 + (n / 10 % 30)::integer END AS due_on,
    CASE WHEN fails THEN received_at + interval '1 day' END AS ended_at
FROM spread, LATERAL (SELECT n % 10 = 0 AS fails) fails
WHERE n % 5 = 0;
