-- What book.sql inserts, in the types of SQLite.
CREATE TEMP TABLE clock AS SELECT unixepoch() - 100 * 86400 AS start;

CREATE TEMP VIEW past AS
WITH RECURSIVE bounds AS (SELECT *, 10000 * per_gap AS customers FROM size, clock),
    numbered (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbered, bounds WHERE n < customers * per_customer - 1),
    timed AS (
        SELECT n, 10000001 + 101 * (n % customers / per_gap) + n % per_gap AS c,
            start * 1000 + n * 8640000000 / (customers * per_customer) AS milliseconds
        FROM numbered, bounds
    ),
    named AS (
        SELECT *, printf('%s-%s-7000-8000-%012x', substr(time, 1, 8), substr(time, 9), c) AS id
        FROM (SELECT *, printf('%012x', milliseconds) AS time FROM timed)
    )
SELECT c AS customer_no, printf('F%02d', c % 20) AS fund, 101 + c % 20 AS price_id, 1234567891 + (c % 20) * 1000003 AS price,
       strftime('%Y-%m-%dT%H:%M:%S', milliseconds / 1000, 'unixepoch') || printf('.%03d000Z', milliseconds % 1000) AS received_at,
       date(milliseconds / 1000, 'unixepoch') AS send_date,
       id, unhex(id, '-') AS operation_id, unhex(replace(id, '-8000-', '-8002-'), '-') AS identity, unhex(id || id, '-') AS fingerprint,
       unhex(replace(id, '-8000-', '-8001-'), '-') AS push_operation_id, unhex(id, '-') AS push_identity, 'request-' || n AS request_id
FROM named;

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

CREATE TEMP VIEW later AS
SELECT n, received_at, later_id AS id, iif(fails, 8, 1) AS state,
    iif(fails, date(second, 'unixepoch', '+1 day'), date('now', printf('+%d days', 2 + n / 10 % 30))) AS due_on,
    iif(fails, strftime('%Y-%m-%dT%H:%M:%S.000000Z', second, 'unixepoch', '+1 day'), NULL) AS ended_at
FROM spread
WHERE n % 5 = 0;
