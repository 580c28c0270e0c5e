-- +goose Up
CREATE TABLE embeddings (
    model  TEXT NOT NULL,
    hash   TEXT NOT NULL,   -- of the text
    vector BYTEA NOT NULL,  -- a signed byte per dimension
    used   BIGINT NOT NULL, -- microseconds since 1970
    PRIMARY KEY (model, hash)
);
CREATE INDEX embeddings_by_use ON embeddings (used);

-- +goose Down
DROP TABLE embeddings;
