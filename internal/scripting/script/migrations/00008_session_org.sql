-- +goose Up
ALTER TABLE sessions ADD COLUMN org TEXT NOT NULL DEFAULT ''; -- in which it was made; that of people is part of owner too

-- +goose Down
ALTER TABLE sessions DROP COLUMN org;
