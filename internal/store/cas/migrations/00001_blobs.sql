-- +goose Up
CREATE TABLE blobs (
    hash TEXT PRIMARY KEY,
    size BIGINT NOT NULL
);
CREATE TABLE blob_parts (
    hash  TEXT NOT NULL,
    place BIGINT NOT NULL, -- from 0
    data  BYTEA NOT NULL,
    PRIMARY KEY (hash, place)
);

-- +goose Down
DROP TABLE blob_parts;
DROP TABLE blobs;
