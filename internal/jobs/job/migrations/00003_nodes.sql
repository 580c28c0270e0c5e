-- +goose Up
-- Who runs a job that is not over: a node, while it lives.
ALTER TABLE jobs ADD COLUMN node TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE jobs DROP COLUMN node;
