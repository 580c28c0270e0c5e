-- +goose Up
CREATE TABLE job_keys (
	key     TEXT PRIMARY KEY, -- of a request that may come again
	job     TEXT NOT NULL,    -- the one that it started
	expires BIGINT NOT NULL
);

CREATE INDEX job_keys_by_end ON job_keys (expires);

-- +goose Down
DROP TABLE job_keys;
