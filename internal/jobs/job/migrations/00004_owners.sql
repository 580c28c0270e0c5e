-- +goose Up
CREATE TABLE job_owners ( -- of jobs and schedules that are not the local owner's
	id    TEXT PRIMARY KEY,
	owner TEXT NOT NULL,
	asker TEXT NOT NULL -- JSON: who it was, with what rights
);
CREATE INDEX job_owners_by_owner ON job_owners (owner);

-- +goose Down
DROP TABLE job_owners;
