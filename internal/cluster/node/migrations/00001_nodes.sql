-- +goose Up
CREATE TABLE nodes (
    id      TEXT PRIMARY KEY,
    name    TEXT NOT NULL UNIQUE,
    slot    BIGINT NOT NULL, -- the claim it holds while it lives
    state   TEXT NOT NULL,   -- up, draining
    address TEXT NOT NULL,
    version TEXT NOT NULL,
    started BIGINT NOT NULL, -- times are the database's, in microseconds since 1970
    beat    BIGINT NOT NULL, -- time of the last heartbeat
    skew    BIGINT NOT NULL, -- how far its own clock is ahead, in microseconds
    watches BOOLEAN NOT NULL -- a client of this node follows the events of all nodes
);

-- +goose Down
DROP TABLE nodes;
