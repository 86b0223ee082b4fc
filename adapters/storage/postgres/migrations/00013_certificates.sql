-- The client certificate that the keys of a subscription need. It only adds: a program
-- of an earlier version that is running keeps working, but does not ask for certificates.
-- +goose Up
ALTER TABLE {{prefix}}subscriptions ADD COLUMN client_certificate text NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE {{prefix}}subscriptions DROP COLUMN client_certificate;
