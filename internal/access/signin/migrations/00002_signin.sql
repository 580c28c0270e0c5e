-- +goose Up
CREATE TABLE signin_flows ( -- people who are at their provider
	state    BYTEA PRIMARY KEY, -- SHA-256 of the state parameter
	browser  BYTEA NOT NULL, -- SHA-256 of the cookie of the browser that began
	provider TEXT NOT NULL,
	expires  BIGINT NOT NULL, -- microseconds since 1970
	sealed   BYTEA NOT NULL
);

CREATE TABLE signin_tokens ( -- that providers gave at sign-ins; they outlive the sessions
	id            TEXT PRIMARY KEY,
	person        TEXT NOT NULL,
	provider      TEXT NOT NULL,
	created       BIGINT NOT NULL, -- times are microseconds since 1970
	updated       BIGINT NOT NULL,
	version       BIGINT NOT NULL DEFAULT 1, -- grows with every renewal
	claimed_until BIGINT NOT NULL DEFAULT 0, -- while a process renews them
	sealed        BYTEA NOT NULL
);
CREATE INDEX signin_tokens_by_person ON signin_tokens (person, provider, created);
