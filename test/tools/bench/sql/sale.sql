-- One sale, one transaction, one statement per step: what a careful service
-- without group commit does for each request.
\set n :n + 1
\set customer 10000001 + 101 * random(0, 9999)
\set account :customer
\set fund :customer % 20
\set units random(1000000, 4999999)
BEGIN;
INSERT INTO operations (caller_id, subscription, operation, operation_id, fingerprint, state)
VALUES (lpad(to_hex(:run::bigint), 8, '0') || '-' || lpad(to_hex(:n::bigint), 13, '0') || '-' || lpad(to_hex(:client_id::bigint), 13, '0'), 'bench', 2, (lpad(to_hex(:run::bigint), 8, '0') || lpad(to_hex(:n::bigint), 12, '0') || lpad(to_hex(:client_id::bigint), 12, '0'))::uuid, '\x9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08', 2)
RETURNING caller_id, operation_id \gset
SELECT price, imkb_code, holder_corporation_name, currency_code FROM prices WHERE price_id = 101 + :fund::bigint \gset
\set proceeds (:units * :price + 500000000000) / 1000000000000
UPDATE holdings SET units = units - :units::bigint
WHERE customer_no = :customer::bigint AND imkb_code = :imkb_code AND holder_corporation_name = :holder_corporation_name AND units >= :units::bigint;
UPDATE accounts SET balance = balance + :proceeds::bigint
WHERE customer_no = :account::bigint AND branch_code = 101 AND account_suffix = 351 AND currency_code = :currency_code;
INSERT INTO sales (customer_no, operation_id, position, subscription, app_key, channel, teller_name, caller_id, received_at, units, imkb_code, holder_corporation_name, price_id, account_customer_no, branch_code, account_suffix, currency_code, proceeds, state)
VALUES (:customer, :operation_id, 0, 'bench', '', 'MOBILE', '', :caller_id, now(), :units, :imkb_code, :holder_corporation_name, 101 + :fund::bigint, :account, 101, 351, :currency_code, :proceeds, 2);
INSERT INTO transfers (operation_id, position, customer_no, unit_quantity, account_customer_no, branch_code, account_suffix, money_quantity, posted_at, imkb_code, holder_corporation_name, currency_code)
VALUES (:operation_id, 0, :customer, - :units::bigint, :account, 101, 351, :proceeds, now(), :imkb_code, :holder_corporation_name, :currency_code);
COMMIT;
