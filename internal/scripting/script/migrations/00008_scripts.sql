-- +goose Up
CREATE TABLE publications (
    name   TEXT PRIMARY KEY,
    origin TEXT NOT NULL
);
CREATE TABLE publication_versions (
    name         TEXT NOT NULL,
    version      BIGINT NOT NULL,
    hash         TEXT NOT NULL,
    publisher    TEXT NOT NULL,
    published_at BIGINT NOT NULL,
    PRIMARY KEY (name, version)
);

CREATE TABLE sessions (
    id       TEXT PRIMARY KEY,
    owner    TEXT NOT NULL,
    name     TEXT NOT NULL,
    language TEXT NOT NULL,
    turns    BIGINT NOT NULL,           -- counts every change of state
    state    BYTEA,                     -- a snapshot; NULL is a fresh one
    created  BIGINT NOT NULL,           -- times are microseconds since 1970
    used     BIGINT NOT NULL,
    time_ms  BIGINT NOT NULL DEFAULT 0, -- of one turn; 0 is the server's limit
    memory   BIGINT NOT NULL DEFAULT 0, -- in bytes; likewise
    run      TEXT NOT NULL DEFAULT '',  -- the approved run that left the state so, if one did
    holder   TEXT NOT NULL DEFAULT '',  -- the node that runs a turn of the session now, while it lives
    handle   TEXT,                      -- the name by which its owner can use it instead of the id, if any
    runs     BIGINT NOT NULL DEFAULT 0, -- turns, also those that changed nothing, when it was last saved
    org      TEXT NOT NULL DEFAULT ''   -- in which it was made; that of people is part of owner too
);
CREATE INDEX sessions_by_owner ON sessions (owner, created);
CREATE INDEX sessions_by_use ON sessions (used);
CREATE UNIQUE INDEX sessions_by_handle ON sessions (owner, handle);

-- The turns of sessions whose snapshots only one build of the engine can read.
CREATE TABLE session_turns (
    session TEXT NOT NULL,
    version BIGINT NOT NULL, -- of the state that the turn left
    name    TEXT NOT NULL,
    source  TEXT,            -- NULL is a reset
    params  BYTEA,
    main    BOOLEAN NOT NULL,
    journal BYTEA,           -- its effects and their outcomes
    PRIMARY KEY (session, version)
);

-- +goose Down
DROP TABLE session_turns;
DROP TABLE sessions;
DROP TABLE publication_versions;
DROP TABLE publications;
