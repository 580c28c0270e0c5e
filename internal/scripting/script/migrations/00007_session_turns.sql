-- +goose Up
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
