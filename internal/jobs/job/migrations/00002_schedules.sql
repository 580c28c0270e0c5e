-- +goose Up
CREATE TABLE job_schedules (
	id       TEXT PRIMARY KEY,
	cron     TEXT NOT NULL,
	zone     TEXT NOT NULL, -- of the IANA database; '' is the server's own
	name     TEXT NOT NULL, -- this and what follows: of the jobs it starts
	hash     TEXT NOT NULL,
	source   TEXT NOT NULL,
	params   BYTEA,
	creator  TEXT NOT NULL,
	tags     TEXT NOT NULL,
	priority BIGINT NOT NULL,
	created  BIGINT NOT NULL, -- times are microseconds since 1970; 0 is never
	next     BIGINT NOT NULL,
	paused   BOOLEAN NOT NULL,
	last     BIGINT NOT NULL DEFAULT 0,
	last_job TEXT NOT NULL DEFAULT '',
	started  BIGINT NOT NULL DEFAULT 0,
	skipped  BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX job_schedules_by_next ON job_schedules (next);
ALTER TABLE jobs ADD COLUMN schedule TEXT NOT NULL DEFAULT '';
CREATE INDEX jobs_by_schedule ON jobs (schedule, created DESC, id DESC) WHERE schedule <> '';

-- +goose Down
DROP INDEX jobs_by_schedule;
ALTER TABLE jobs DROP COLUMN schedule;
DROP TABLE job_schedules;
