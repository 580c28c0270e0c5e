-- The program moves the entries of audit_entries and audit_pages here, with their
-- hashes; both tables stay, empty, because nodes of older releases may still write
-- to them during a rolling update.

-- +goose Up
CREATE TABLE audit_log (
    node     TEXT NOT NULL,
    seq      BIGINT NOT NULL, -- 1, 2, 3 … of the node, without gaps
    at       BIGINT NOT NULL, -- microseconds since 1970
    who      TEXT NOT NULL,
    name     TEXT NOT NULL,
    subject  TEXT NOT NULL,
    decision TEXT NOT NULL,
    entry    TEXT NOT NULL,   -- all of it as JSON, as it was hashed
    PRIMARY KEY (node, seq)
);
CREATE INDEX audit_log_by_time ON audit_log (at, node, seq);

-- +goose Down
DROP TABLE audit_log;
