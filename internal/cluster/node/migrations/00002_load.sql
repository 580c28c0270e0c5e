-- +goose Up
ALTER TABLE nodes ADD COLUMN load TEXT NOT NULL DEFAULT ''; -- JSON: how much it has to do

-- +goose Down
ALTER TABLE nodes DROP COLUMN load;
