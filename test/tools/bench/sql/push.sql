-- One push record: its operation and its message, one transaction.
\set n :n + 1
\set customer 10000001 + 101 * random(0, 9999)
BEGIN;
INSERT INTO operations (received_at, operation, state, identity, operation_id, fingerprint, subscription, app_key, channel, teller_name, caller_id)
VALUES (now(), 1, 2, (lpad(to_hex(:run::bigint), 8, '0') || lpad(to_hex(:n::bigint), 12, '0') || lpad(to_hex(:client_id::bigint), 12, '0'))::uuid, (lpad(to_hex(:run::bigint), 8, '0') || lpad(to_hex(:n::bigint), 12, '0') || lpad(to_hex(:client_id::bigint), 12, '0'))::uuid, '', 'bench', '', 'PUSH', '', '');
INSERT INTO notifications (push_interaction_id, send_date, position, platform, send_status, operation_id, identity, user_id, external_application_code, push_id, external_tran_code, subject, content, deep_link_url, tran_data)
VALUES (42, '2026-11-20', 0, 73, 1, (lpad(to_hex(:run::bigint), 8, '0') || lpad(to_hex(:n::bigint), 12, '0') || lpad(to_hex(:client_id::bigint), 12, '0'))::uuid, md5(:run || '-' || :n || '-' || :client_id)::uuid, 'user-' || :customer, 'MOBILBANK', lpad(to_hex(:run::bigint), 8, '0') || '-' || lpad(to_hex(:n::bigint), 13, '0') || '-' || lpad(to_hex(:client_id::bigint), 13, '0'), 'FUNDSALE', 'Fon satış talimatınız gerçekleşti', 'Sayın müşterimiz, fon satış talimatınız bugün gerçekleşmiştir. Satış tutarı hesabınıza aktarılmıştır. Ayrıntılar için uygulamamızı ziyaret edebilirsiniz.', 'examplebank://funds/sales/latest', '[{"Code":"FUND","Name":"F07"},{"Code":"LANG","Name":"TR"}]');
COMMIT;
