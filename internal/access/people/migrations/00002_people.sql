-- +goose Up
-- Times are microseconds since 1970; 0 is never.
CREATE TABLE people (
	id      TEXT PRIMARY KEY,
	name    TEXT NOT NULL,
	email   TEXT NOT NULL, -- shown to people; never identifies anybody
	created BIGINT NOT NULL,
	seen    BIGINT NOT NULL, -- when they last signed in
	blocked BIGINT NOT NULL DEFAULT 0,
	version BIGINT NOT NULL DEFAULT 1, -- grows with every change that affects what they may do
	verified BOOLEAN NOT NULL DEFAULT FALSE -- the provider has checked the address
);

CREATE TABLE people_identities ( -- the only way to find a person who signs in
	issuer  TEXT NOT NULL,
	tenant  TEXT NOT NULL,
	subject TEXT NOT NULL,
	person  TEXT NOT NULL,
	PRIMARY KEY (issuer, tenant, subject)
);
CREATE INDEX people_identities_by_person ON people_identities (person);

CREATE TABLE people_members (
	org    TEXT NOT NULL,
	person TEXT NOT NULL,
	roles  TEXT NOT NULL, -- JSON
	source TEXT NOT NULL, -- the provider that gave the roles
	PRIMARY KEY (org, person)
);
CREATE INDEX people_members_by_person ON people_members (person);

CREATE TABLE people_sessions ( -- of browsers
	hash     BYTEA PRIMARY KEY, -- SHA-256 of the cookie
	person   TEXT NOT NULL,
	org      TEXT NOT NULL,
	provider TEXT NOT NULL,
	remote   TEXT NOT NULL, -- the provider's name of the session
	created  BIGINT NOT NULL,
	expires  BIGINT NOT NULL,
	checked  BIGINT NOT NULL, -- when the provider last confirmed it
	sealed   BYTEA NOT NULL -- the provider's tokens
);
CREATE INDEX people_sessions_by_person ON people_sessions (person);
CREATE INDEX people_sessions_by_end ON people_sessions (expires);
