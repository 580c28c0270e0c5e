-- +goose Up
CREATE TABLE jobs (
	id       TEXT PRIMARY KEY,
	state    TEXT NOT NULL,
	name     TEXT NOT NULL,
	hash     TEXT NOT NULL,
	source   TEXT NOT NULL,
	params   BYTEA,
	creator  TEXT NOT NULL,
	tags     TEXT NOT NULL, -- a JSON array, in the order they were given
	priority BIGINT NOT NULL,
	created  BIGINT NOT NULL, -- times are microseconds since 1970; 0 is not yet
	due      BIGINT NOT NULL,
	started  BIGINT NOT NULL DEFAULT 0,
	finished BIGINT NOT NULL DEFAULT 0,
	attempts BIGINT NOT NULL DEFAULT 0, -- starts since the journal last grew
	steps    BIGINT NOT NULL DEFAULT 0, -- records in the journal when it was last started
	result   BYTEA,
	error    BYTEA, -- a fault as JSON
	output   BYTEA, -- lines as JSON
	tail     BYTEA  -- the end of the journal
);

CREATE INDEX jobs_by_time ON jobs (created DESC, id DESC);
CREATE INDEX jobs_by_state ON jobs (state, created DESC, id DESC);
CREATE INDEX jobs_by_end ON jobs (finished) WHERE finished > 0;

CREATE TABLE job_tags (
	tag TEXT NOT NULL,
	job TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
	PRIMARY KEY (tag, job)
);

CREATE INDEX job_tags_by_job ON job_tags (job);

-- +goose Down
DROP TABLE job_tags;
DROP TABLE jobs;
