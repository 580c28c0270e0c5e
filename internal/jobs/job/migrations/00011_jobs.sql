-- +goose Up
CREATE TABLE jobs (
	id       TEXT PRIMARY KEY,
	state    TEXT NOT NULL,
	name     TEXT NOT NULL,
	hash     TEXT NOT NULL,
	source   TEXT NOT NULL,
	language TEXT NOT NULL DEFAULT '', -- of the source; empty if the hash or the name tells
	params   BYTEA,
	creator  TEXT NOT NULL,
	tags     TEXT NOT NULL, -- a JSON array, in the order they were given
	priority BIGINT NOT NULL,
	schedule TEXT NOT NULL DEFAULT '',
	created  BIGINT NOT NULL, -- times are microseconds since 1970; 0 is not yet
	due      BIGINT NOT NULL,
	started  BIGINT NOT NULL DEFAULT 0,
	finished BIGINT NOT NULL DEFAULT 0,
	node     TEXT NOT NULL DEFAULT '', -- that runs a job that is not over, while it lives
	attempts BIGINT NOT NULL DEFAULT 0, -- starts since the journal last grew
	steps    BIGINT NOT NULL DEFAULT 0, -- records in the journal when it was last started
	origin   TEXT NOT NULL DEFAULT '', -- the span that submitted the job
	trace_id TEXT NOT NULL DEFAULT '', -- of the latest run
	result   BYTEA,
	error    BYTEA, -- a fault as JSON
	output   BYTEA, -- lines as JSON
	tail     BYTEA  -- the end of the journal
);
CREATE INDEX jobs_by_time ON jobs (created DESC, id DESC);
CREATE INDEX jobs_by_state ON jobs (state, created DESC, id DESC);
CREATE INDEX jobs_by_end ON jobs (finished) WHERE finished > 0;
CREATE INDEX jobs_by_schedule ON jobs (schedule, created DESC, id DESC) WHERE schedule <> '';
CREATE INDEX ended_by_schedule ON jobs (schedule, finished DESC, id DESC) WHERE finished > 0 AND schedule <> '';

CREATE TABLE job_tags (
	tag TEXT NOT NULL,
	job TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
	PRIMARY KEY (tag, job)
);
CREATE INDEX job_tags_by_job ON job_tags (job);

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
	reason   TEXT NOT NULL DEFAULT '', -- why it was paused; '' if somebody did it
	last     BIGINT NOT NULL DEFAULT 0,
	last_job TEXT NOT NULL DEFAULT '',
	started  BIGINT NOT NULL DEFAULT 0,
	skipped  BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX job_schedules_by_next ON job_schedules (next);

CREATE TABLE job_owners ( -- of jobs and schedules that are not the local owner's
	id     TEXT PRIMARY KEY,
	owner  TEXT NOT NULL,
	asker  TEXT NOT NULL, -- JSON: who it was, with what rights
	person TEXT NOT NULL DEFAULT '' -- in whose chat it was started; empty if in none
);
CREATE INDEX job_owners_by_owner ON job_owners (owner);

CREATE TABLE job_live ( -- how far jobs are that are not over, for nodes that do not run them
	job      TEXT PRIMARY KEY,
	fraction DOUBLE PRECISION NOT NULL,
	message  TEXT NOT NULL
);
CREATE TABLE job_said ( -- and what they said so far
	job   TEXT NOT NULL,
	first BIGINT NOT NULL, -- number of the first of these lines
	lines BYTEA NOT NULL,  -- JSON
	PRIMARY KEY (job, first)
);

CREATE TABLE job_keys (
	key     TEXT PRIMARY KEY, -- of a request that may come again
	job     TEXT NOT NULL,    -- the one that it started
	expires BIGINT NOT NULL
);
CREATE INDEX job_keys_by_end ON job_keys (expires);

-- +goose Down
DROP TABLE job_keys;
DROP TABLE job_said;
DROP TABLE job_live;
DROP TABLE job_owners;
DROP TABLE job_schedules;
DROP TABLE job_tags;
DROP TABLE jobs;
