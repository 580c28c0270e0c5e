-- What audit_entries holds is moved here by the program, with its hashes; the
-- table stays for that, empty.

-- +goose Up
CREATE TABLE audit_pages (
    node    TEXT NOT NULL,
    first   BIGINT NOT NULL, -- number of the first entry; they follow each other
    last    BIGINT NOT NULL,
    since   BIGINT NOT NULL, -- the earliest time in it, in microseconds since 1970
    until   BIGINT NOT NULL, -- the latest
    entries TEXT NOT NULL,   -- as JSON, a line each
    PRIMARY KEY (node, first)
);
CREATE INDEX audit_pages_by_time ON audit_pages (until, node, first);
CREATE INDEX audit_pages_by_age ON audit_pages (node, since, first);

-- +goose Down
DROP TABLE audit_pages;
