-- +goose Up
-- The person in whose chat a job or schedule was started; empty if in none.
ALTER TABLE job_owners ADD COLUMN person TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE job_owners DROP COLUMN person;
