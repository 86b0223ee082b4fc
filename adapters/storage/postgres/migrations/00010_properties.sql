-- What is true of the book as a whole, such as the time zone of its days. It only
-- adds: a program of version 9 that is running does not read it.
-- +goose Up
CREATE TABLE {{prefix}}properties (
    name  text COLLATE "C" NOT NULL,
    value text NOT NULL,
    PRIMARY KEY (name)
);

-- +goose Down
DROP TABLE {{prefix}}properties;
