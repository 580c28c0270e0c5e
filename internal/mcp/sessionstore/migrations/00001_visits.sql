-- +goose Up
CREATE TABLE visits (
    id      TEXT PRIMARY KEY, -- a hash of the session's id, which is its client's key
    place   TEXT NOT NULL,    -- the upstream's namespace, or empty
    who     TEXT NOT NULL,
    version TEXT NOT NULL,
    caps    TEXT NOT NULL,    -- JSON
    level   TEXT NOT NULL,    -- of log messages
    seen    BIGINT NOT NULL   -- the database's time, in microseconds since 1970
);
CREATE INDEX visits_by_use ON visits (seen);

-- +goose Down
DROP TABLE visits;
