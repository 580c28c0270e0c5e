-- +goose Up
CREATE TABLE access_keys (
	owner    TEXT NOT NULL DEFAULT '', -- person:ID/ORG; empty for keys of services
	name     TEXT NOT NULL, -- never reused by its owner: what a key created belongs to its name
	hash     BYTEA NOT NULL UNIQUE, -- SHA-256 of the token
	rights   TEXT NOT NULL, -- JSON
	created  BIGINT NOT NULL, -- times are microseconds since 1970; 0 is never
	expires  BIGINT NOT NULL,
	revoked  BIGINT NOT NULL DEFAULT 0,
	used     BIGINT NOT NULL DEFAULT 0,
	version  BIGINT NOT NULL DEFAULT 1, -- grows with every change that affects authentication
	PRIMARY KEY (owner, name)
);

CREATE TABLE access_sessions ( -- of browsers
	hash    BYTEA PRIMARY KEY, -- SHA-256 of the cookie
	token   BYTEA NOT NULL, -- SHA-256 of the token it was started with
	created BIGINT NOT NULL,
	expires BIGINT NOT NULL
);
CREATE INDEX access_sessions_by_end ON access_sessions (expires);

CREATE TABLE access_use (
	principal TEXT NOT NULL,
	day       BIGINT NOT NULL, -- since 1970, in UTC
	calls     BIGINT NOT NULL,
	PRIMARY KEY (principal, day)
);
