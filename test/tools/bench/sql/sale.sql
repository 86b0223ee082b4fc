-- One sale, one transaction, one statement per step: what a careful service
-- without group commit does for each request. If it is hot, every sale pays into one account,
-- and half of them sell the holdings of the same ten customers.
\set n :n + 1
\if :hot
\set half random(0, 1)
\set customer 10000001 + 101 * (case when :half = 1 then random(0, 9) else random(0, 9999) end)
\set account 10000001
\else
\set customer 10000001 + 101 * random(0, 9999)
\set account :customer
\endif
\set fund :customer % 20
\set units random(1000000, 4999999)
BEGIN;
INSERT INTO operations (received_at, ended_at, operation, state, identity, operation_id, fingerprint, subscription, app_key, channel, teller_name, caller_id)
VALUES (now(), now(), 2, 2, md5(lpad(to_hex(:run::bigint), 8, '0') || '-' || lpad(to_hex(:n::bigint), 13, '0') || '-' || lpad(to_hex(:client_id::bigint), 13, '0'))::uuid, (lpad(to_hex(:run::bigint), 8, '0') || lpad(to_hex(:n::bigint), 12, '0') || lpad(to_hex(:client_id::bigint), 12, '0'))::uuid, '\x9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08', 'bench', '', 'MOBILE', '', lpad(to_hex(:run::bigint), 8, '0') || '-' || lpad(to_hex(:n::bigint), 13, '0') || '-' || lpad(to_hex(:client_id::bigint), 13, '0'))
RETURNING operation_id \gset
SELECT price, imkb_code, holder_corporation_name, currency_code FROM prices WHERE price_id = 101 + :fund::bigint \gset
\set proceeds (:units * :price + 500000000000) / 1000000000000
UPDATE holdings SET units = units - :units::bigint
WHERE customer_no = :customer::bigint AND imkb_code = :imkb_code AND holder_corporation_name = :holder_corporation_name AND units >= :units::bigint;
UPDATE accounts SET balance = balance + :proceeds::bigint
WHERE customer_no = :account::bigint AND branch_code = 101 AND account_suffix = 351 AND currency_code = :currency_code;
INSERT INTO sales (customer_no, price_id, units, account_customer_no, branch_code, account_suffix, settled_price_id, settled_price, proceeds, position, state, operation_id, currency_code, imkb_code, holder_corporation_name)
VALUES (:customer, 101 + :fund::bigint, :units, :account, 101, 351, 101 + :fund::bigint, :price, :proceeds, 0, 2, :operation_id, :currency_code, :imkb_code, :holder_corporation_name);
COMMIT;
