-- +goose Up
CREATE TABLE access_keys_owned (
	owner    TEXT NOT NULL DEFAULT '', -- person:ID/ORG; empty for keys of services, and for those that Adopt has not seen yet
	name     TEXT NOT NULL, -- never reused by its owner
	hash     BYTEA NOT NULL UNIQUE, -- SHA-256 of the token
	rights   TEXT NOT NULL, -- JSON
	created  BIGINT NOT NULL, -- times are microseconds since 1970; 0 is never
	expires  BIGINT NOT NULL,
	revoked  BIGINT NOT NULL DEFAULT 0,
	used     BIGINT NOT NULL DEFAULT 0,
	version  BIGINT NOT NULL DEFAULT 1, -- grows with every change that affects authentication
	PRIMARY KEY (owner, name)
);
INSERT INTO access_keys_owned (name, hash, rights, created, expires, revoked, used, version)
	SELECT name, hash, rights, created, expires, revoked, used, version FROM access_keys;
DROP TABLE access_keys;
ALTER TABLE access_keys_owned RENAME TO access_keys;

-- +goose Down
CREATE TABLE access_keys_named (
	name     TEXT PRIMARY KEY,
	hash     BYTEA NOT NULL UNIQUE,
	rights   TEXT NOT NULL,
	created  BIGINT NOT NULL,
	expires  BIGINT NOT NULL,
	revoked  BIGINT NOT NULL DEFAULT 0,
	used     BIGINT NOT NULL DEFAULT 0,
	version  BIGINT NOT NULL DEFAULT 1
);
INSERT INTO access_keys_named (name, hash, rights, created, expires, revoked, used, version)
	SELECT name, hash, rights, created, expires, revoked, used, version FROM access_keys WHERE owner = '';
DROP TABLE access_keys;
ALTER TABLE access_keys_named RENAME TO access_keys;
