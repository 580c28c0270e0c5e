-- +goose Up
-- The node that runs a turn of the session now, while it lives.
ALTER TABLE sessions ADD COLUMN holder TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE sessions DROP COLUMN holder;
