-- +goose Up
ALTER TABLE visits ADD COLUMN agent TEXT NOT NULL DEFAULT ''; -- the client, as it calls itself

-- +goose Down
ALTER TABLE visits DROP COLUMN agent;
