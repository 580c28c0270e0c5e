-- +goose Up
ALTER TABLE jobs ADD COLUMN origin TEXT NOT NULL DEFAULT ''; -- the span that submitted the job
ALTER TABLE jobs ADD COLUMN trace_id TEXT NOT NULL DEFAULT ''; -- of the latest run

-- +goose Down
ALTER TABLE jobs DROP COLUMN trace_id;
ALTER TABLE jobs DROP COLUMN origin;
