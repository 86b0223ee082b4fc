-- Where to find the sales of a customer, and what else has no index: a B-tree would
-- make each batch write 46 % more pages. Instead, the service indexes many rows at
-- once in the background. These entries are a run: they are sorted and lie side by
-- side. A lookup searches each run, and reads the rows after the last one.
--
-- source is a column of a table (see lookup.go), and last_row the rowid of the last
-- row of the run. It only adds: a program of version 6 that is running keeps working.
-- +goose Up
CREATE TABLE {{prefix}}lookup_runs (
    source   INTEGER NOT NULL,
    last_row INTEGER NOT NULL,
    PRIMARY KEY (source, last_row)
) STRICT, WITHOUT ROWID;

CREATE TABLE {{prefix}}lookup_entries (
    source       INTEGER NOT NULL,
    last_row     INTEGER NOT NULL,
    value        ANY     NOT NULL,
    operation_id BLOB    NOT NULL,
    PRIMARY KEY (source, last_row, value, operation_id)
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE {{prefix}}lookup_entries;
DROP TABLE {{prefix}}lookup_runs;
