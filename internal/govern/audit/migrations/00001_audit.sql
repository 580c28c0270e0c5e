-- +goose Up
CREATE TABLE audit_entries (
    node     TEXT NOT NULL,
    seq      BIGINT NOT NULL, -- 1, 2, 3 … of the node, without gaps
    at       BIGINT NOT NULL, -- microseconds since 1970
    who      TEXT NOT NULL,
    name     TEXT NOT NULL,
    client   TEXT NOT NULL,
    trace    TEXT NOT NULL,
    request  TEXT NOT NULL,
    action   TEXT NOT NULL,   -- call, pin.approve …
    subject  TEXT NOT NULL,   -- the tool, or what the action was about
    args     TEXT NOT NULL,   -- SHA-256 of the arguments
    decision TEXT NOT NULL,
    rule     TEXT NOT NULL,
    size     BIGINT NOT NULL, -- of the result, in bytes
    error    TEXT NOT NULL,   -- its code; empty when it went well
    took     BIGINT NOT NULL, -- microseconds
    prev     TEXT NOT NULL,   -- hash of the entry before
    hash     TEXT NOT NULL,
    PRIMARY KEY (node, seq)
);
CREATE INDEX audit_entries_by_time ON audit_entries (at);
CREATE TABLE audit_chains (
    node     TEXT PRIMARY KEY,
    seq      BIGINT NOT NULL, -- of the last entry
    hash     TEXT NOT NULL,
    cut      BIGINT NOT NULL, -- up to here entries were let go because they were old; 0 is nowhere
    cut_hash TEXT NOT NULL
);

-- +goose Down
DROP TABLE audit_chains;
DROP TABLE audit_entries;
