-- +goose Up
CREATE TABLE contents (
    hash       TEXT PRIMARY KEY,
    size       BIGINT NOT NULL,
    mime       TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

-- +goose Down
DROP TABLE contents;
