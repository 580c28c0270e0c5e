-- +goose Up
CREATE TABLE kv (
    owner   TEXT NOT NULL,   -- the principal
    script  TEXT NOT NULL,   -- name of the script; empty for code without one
    name    TEXT NOT NULL,   -- the key
    size    BIGINT NOT NULL, -- of the value, in bytes
    expires BIGINT NOT NULL, -- microseconds since 1970; 0 means never
    value   BYTEA NOT NULL,  -- JSON
    PRIMARY KEY (owner, script, name)
);
CREATE INDEX kv_by_expiry ON kv (expires);
CREATE TABLE kv_swaps (
    token   TEXT PRIMARY KEY, -- of the effect of a job that compared and set
    swapped BIGINT NOT NULL,  -- 1 if the value was set
    made    BIGINT NOT NULL   -- microseconds since 1970
);

-- +goose Down
DROP TABLE kv_swaps;
DROP TABLE kv;
