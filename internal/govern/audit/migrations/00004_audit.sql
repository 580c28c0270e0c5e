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
    org      TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (node, seq)
);
CREATE INDEX audit_log_by_time ON audit_log (at, node, seq);
CREATE INDEX audit_log_by_org ON audit_log (org, at) WHERE org <> ''; -- most servers have no organisations

CREATE TABLE audit_chains (
    node     TEXT PRIMARY KEY,
    seq      BIGINT NOT NULL, -- of the last entry
    hash     TEXT NOT NULL,
    cut      BIGINT NOT NULL, -- up to here entries were deleted because they were old; 0 is nowhere
    cut_hash TEXT NOT NULL
);
