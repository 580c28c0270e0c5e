-- +goose Up
ALTER TABLE deliveries ADD COLUMN outcome BIGINT NOT NULL DEFAULT 1; -- 2, 3 … took the place of an earlier one

-- +goose Down
ALTER TABLE deliveries DROP COLUMN outcome;
