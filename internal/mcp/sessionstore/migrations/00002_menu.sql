-- +goose Up
ALTER TABLE visits ADD COLUMN menu TEXT NOT NULL DEFAULT ''; -- the list of tools that the client asked for

-- +goose Down
ALTER TABLE visits DROP COLUMN menu;
