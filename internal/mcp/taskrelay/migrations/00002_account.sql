-- +goose Up
ALTER TABLE relayed_tasks ADD COLUMN account TEXT NOT NULL DEFAULT ''; -- whose connection to the upstream started it

-- +goose Down
ALTER TABLE relayed_tasks DROP COLUMN account;
