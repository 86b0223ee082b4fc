-- +goose Up
-- The mark of a database that is not the book of a bank, such as a sandbox. The
-- book of a bank has no row. The note belongs to what made the mark.
CREATE TABLE {{prefix}}marks (
    mark TEXT NOT NULL,
    note TEXT NOT NULL,
    PRIMARY KEY (mark)
) STRICT;

-- +goose Down
DROP TABLE {{prefix}}marks;
