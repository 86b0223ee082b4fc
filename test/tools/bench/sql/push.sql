-- One push record, one row, one transaction.
\set n :n + 1
\set customer 10000001 + 101 * random(0, 9999)
INSERT INTO notifications (user_id, digest, subscription, channel, received_at, external_application_code, external_tran_code, push_id, push_interaction_id, platform, subject, content, deep_link_url, send_status, send_date, tran_data)
VALUES ('user-' || :customer, sha256((:run || '-' || :n || '-' || :client_id)::bytea), 'bench', 'PUSH', now(), 'MOBILBANK', 'FUNDSALE', lpad(to_hex(:run::bigint), 8, '0') || '-' || lpad(to_hex(:n::bigint), 13, '0') || '-' || lpad(to_hex(:client_id::bigint), 13, '0'), 42, 73, 'Fon satış talimatınız gerçekleşti', 'Sayın müşterimiz, fon satış talimatınız bugün gerçekleşmiştir. Satış tutarı hesabınıza aktarılmıştır. Ayrıntılar için uygulamamızı ziyaret edebilirsiniz.', 'examplebank://funds/sales/latest', 1, '2026-11-20', '[{"Code":"FUND","Name":"F07"},{"Code":"LANG","Name":"TR"}]');
