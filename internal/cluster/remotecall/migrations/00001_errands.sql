-- +goose Up
CREATE TABLE errands (
    id     TEXT PRIMARY KEY,
    node   TEXT NOT NULL,   -- the node to call; empty: the node that the call concerns
    body   BYTEA NOT NULL,
    answer BYTEA,           -- NULL until it is done
    made   BIGINT NOT NULL  -- the database's time, in microseconds since 1970
);

-- +goose Down
DROP TABLE errands;
