-- +goose Up
CREATE TABLE sessions (
    id       TEXT PRIMARY KEY,
    owner    TEXT NOT NULL,
    name     TEXT NOT NULL,
    language TEXT NOT NULL,
    turns    BIGINT NOT NULL, -- counts every change of state
    state    BYTEA,           -- a snapshot; NULL is a fresh one
    created  BIGINT NOT NULL, -- times are microseconds since 1970
    used     BIGINT NOT NULL
);
CREATE INDEX sessions_by_owner ON sessions (owner, created);
CREATE INDEX sessions_by_use ON sessions (used);

-- +goose Down
DROP TABLE sessions;
