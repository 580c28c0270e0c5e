-- +goose Up
-- Times are microseconds since 1970; 0 is never. Of codes and tokens only SHA-256 hashes
-- are stored.
CREATE TABLE as_clients ( -- that registered themselves
	id        TEXT PRIMARY KEY,
	name      TEXT NOT NULL,
	redirects TEXT NOT NULL, -- JSON
	created   BIGINT NOT NULL,
	used      BIGINT NOT NULL -- when it last got tokens
);

CREATE TABLE as_requests ( -- that wait for a person's consent
	id      BYTEA PRIMARY KEY,
	browser BYTEA NOT NULL, -- hash of the cookie of the browser that brought it
	body    TEXT NOT NULL, -- JSON
	expires BIGINT NOT NULL
);

CREATE TABLE as_consents (
	person   TEXT NOT NULL,
	org      TEXT NOT NULL,
	client   TEXT NOT NULL,
	redirect TEXT NOT NULL, -- installations may share a client's id
	scopes   TEXT NOT NULL, -- with spaces between
	given    BIGINT NOT NULL,
	PRIMARY KEY (person, org, client, redirect)
);

CREATE TABLE as_grants (
	id       TEXT PRIMARY KEY,
	person   TEXT NOT NULL,
	org      TEXT NOT NULL,
	client   TEXT NOT NULL,
	name     TEXT NOT NULL, -- of the client, for people
	resource TEXT NOT NULL,
	scopes   TEXT NOT NULL,
	created  BIGINT NOT NULL,
	used     BIGINT NOT NULL, -- when it last gave tokens
	revoked  BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX as_grants_by_person ON as_grants (person);

CREATE TABLE as_codes (
	hash      BYTEA PRIMARY KEY,
	grant_id  TEXT NOT NULL,
	redirect  TEXT NOT NULL,
	challenge TEXT NOT NULL, -- of PKCE, S256
	expires   BIGINT NOT NULL,
	used      BIGINT NOT NULL DEFAULT 0
);

CREATE TABLE as_tokens (
	hash     BYTEA PRIMARY KEY,
	grant_id TEXT NOT NULL,
	kind     TEXT NOT NULL, -- access or refresh
	expires  BIGINT NOT NULL,
	used     BIGINT NOT NULL DEFAULT 0 -- when a refresh token was exchanged
);
CREATE INDEX as_tokens_by_grant ON as_tokens (grant_id);
CREATE INDEX as_tokens_by_end ON as_tokens (expires);

CREATE TABLE as_devices (
	hash     BYTEA PRIMARY KEY, -- of the device code
	code     TEXT NOT NULL UNIQUE, -- that the person types in
	client   TEXT NOT NULL,
	name     TEXT NOT NULL,
	resource TEXT NOT NULL,
	scopes   TEXT NOT NULL,
	expires  BIGINT NOT NULL,
	pause    BIGINT NOT NULL, -- seconds between two requests
	asked    BIGINT NOT NULL,
	state    TEXT NOT NULL, -- pending, allowed, denied, used
	grant_id TEXT NOT NULL
);

CREATE TABLE as_assertions ( -- identity assertion grants that were used
	issuer  TEXT NOT NULL,
	id      BYTEA NOT NULL, -- hash of its jti
	expires BIGINT NOT NULL, -- when nobody accepts it any more
	PRIMARY KEY (issuer, id)
);
CREATE INDEX as_assertions_by_end ON as_assertions (expires);

CREATE TABLE as_attempts ( -- registrations, device logins and wrong codes of some minutes
	id      BYTEA PRIMARY KEY, -- hash of what is counted, whose it is, and when it begins
	count   BIGINT NOT NULL,
	expires BIGINT NOT NULL
);
CREATE INDEX as_attempts_by_end ON as_attempts (expires);
