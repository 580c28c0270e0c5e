-- +goose Up
ALTER TABLE jobs ADD COLUMN language TEXT NOT NULL DEFAULT ''; -- of the source; empty if the hash or the name tells

-- +goose Down
ALTER TABLE jobs DROP COLUMN language;
