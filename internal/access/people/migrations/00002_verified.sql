-- +goose Up
ALTER TABLE people ADD COLUMN verified BOOLEAN NOT NULL DEFAULT FALSE; -- the provider has checked the address

-- +goose Down
ALTER TABLE people DROP COLUMN verified;
