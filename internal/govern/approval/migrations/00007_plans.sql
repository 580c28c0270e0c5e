-- +goose Up
ALTER TABLE approvals ADD COLUMN incomplete TEXT NOT NULL DEFAULT ''; -- why the plan ends too early
ALTER TABLE approvals ADD COLUMN undoes TEXT NOT NULL DEFAULT '';     -- the job that the run undoes

-- +goose Down
ALTER TABLE approvals DROP COLUMN undoes;
ALTER TABLE approvals DROP COLUMN incomplete;
