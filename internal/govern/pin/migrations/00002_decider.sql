-- +goose Up
ALTER TABLE pins ADD COLUMN decider TEXT NOT NULL DEFAULT ''; -- ID of the principal, whose name is decided_by

-- +goose Down
ALTER TABLE pins DROP COLUMN decider;
