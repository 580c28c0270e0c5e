-- +goose Up
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

-- +goose Down
DROP TABLE job_said;
DROP TABLE job_live;
