-- +goose Up
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

-- +goose Down
DROP TABLE signin_tokens;
