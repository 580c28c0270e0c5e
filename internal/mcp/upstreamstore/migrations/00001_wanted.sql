-- +goose Up
CREATE TABLE wanted_upstreams (
    name       TEXT PRIMARY KEY,
    removed    BOOLEAN NOT NULL, -- an upstream of the configuration that a user removed
    sealed     BOOLEAN NOT NULL, -- settings are encrypted
    settings   BYTEA NOT NULL,   -- JSON
    changed    BIGINT NOT NULL,  -- microseconds since 1970
    changed_by TEXT NOT NULL
);

-- +goose Down
DROP TABLE wanted_upstreams;
