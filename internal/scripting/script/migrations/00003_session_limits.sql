-- +goose Up
ALTER TABLE sessions ADD COLUMN time_ms BIGINT NOT NULL DEFAULT 0; -- of one turn; 0 is the server's limit
ALTER TABLE sessions ADD COLUMN memory BIGINT NOT NULL DEFAULT 0;  -- in bytes; likewise

-- +goose Down
ALTER TABLE sessions DROP COLUMN memory;
ALTER TABLE sessions DROP COLUMN time_ms;
