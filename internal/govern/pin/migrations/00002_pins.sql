-- +goose Up
CREATE TABLE pins (
    id              TEXT PRIMARY KEY,
    upstream        TEXT NOT NULL,
    kind            TEXT NOT NULL,   -- tool, prompt, instructions
    name            TEXT NOT NULL,
    target          TEXT NOT NULL,   -- the server it was last offered by
    digest          TEXT NOT NULL,   -- of what it offers, SHA-256
    definition      BYTEA NOT NULL,  -- canonical JSON
    flags           BYTEA NOT NULL,  -- JSON: what the scanner found
    approved        TEXT NOT NULL,   -- digest that somebody approved, or empty
    approved_target TEXT NOT NULL,
    approved_as     BYTEA,           -- its canonical JSON
    refused         TEXT NOT NULL,   -- digest that somebody refused, or empty
    seen            BIGINT NOT NULL, -- times are microseconds since 1970
    changed         BIGINT NOT NULL,
    decided         BIGINT NOT NULL, -- 0 before the first time
    decided_by      TEXT NOT NULL,
    decider         TEXT NOT NULL DEFAULT '', -- ID of the principal, whose name is decided_by
    UNIQUE (upstream, kind, name)
);
