-- +goose Up
ALTER TABLE kept_results ADD COLUMN toolset TEXT NOT NULL DEFAULT ''; -- of tools, in which it was stored; '' is none

-- +goose Down
ALTER TABLE kept_results DROP COLUMN toolset;
