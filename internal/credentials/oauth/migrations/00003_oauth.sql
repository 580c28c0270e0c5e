-- +goose Up
-- Times are microseconds since 1970. What is sealed is encrypted, and bound to
-- the upstream, issuer and owner beside it.
CREATE TABLE oauth_logins (
    upstream      TEXT NOT NULL,
    owner         TEXT NOT NULL,   -- the ID of the principal; '': shared
    server        TEXT NOT NULL,   -- the URL that tokens are for
    issuer        TEXT NOT NULL,
    org           TEXT NOT NULL,   -- of the owner
    state         TEXT NOT NULL,   -- active, or needs_login: the issuer ended it
    scopes        TEXT NOT NULL,   -- granted, with spaces between
    expires       BIGINT NOT NULL, -- of the access token; 0 when unknown
    updated       BIGINT NOT NULL,
    version       BIGINT NOT NULL, -- grows with every change
    claimed_until BIGINT NOT NULL, -- end of the lease of the node that renews the token
    failures      BIGINT NOT NULL, -- renewals that failed since the last that did not
    retry_at      BIGINT NOT NULL, -- no renewal before
    sealed        BYTEA NOT NULL,
    PRIMARY KEY (upstream, owner, server, issuer)
);
CREATE INDEX oauth_logins_owner ON oauth_logins (owner);

CREATE TABLE oauth_clients (
    upstream TEXT NOT NULL,
    issuer   TEXT NOT NULL,
    redirect TEXT NOT NULL,
    expires  BIGINT NOT NULL,      -- 0: never
    sealed   BYTEA NOT NULL,
    PRIMARY KEY (upstream, issuer, redirect)
);
CREATE TABLE oauth_flows (
    state    TEXT PRIMARY KEY,     -- its hash
    upstream TEXT NOT NULL,
    issuer   TEXT NOT NULL,
    expires  BIGINT NOT NULL,
    sealed   BYTEA NOT NULL,
    owner    TEXT NOT NULL DEFAULT '', -- '': shared
    browser  TEXT NOT NULL DEFAULT ''  -- the hash of its cookie; '': any
);
CREATE TABLE oauth_challenges (
    upstream TEXT NOT NULL,
    owner    TEXT NOT NULL,
    server   TEXT NOT NULL,
    metadata TEXT NOT NULL,        -- where the server's metadata is, if it said so
    scopes   TEXT NOT NULL,        -- that it asked for
    error    TEXT NOT NULL,
    PRIMARY KEY (upstream, owner, server)
);
-- Logins that have ended here, until their issuer has been told or does not answer.
CREATE TABLE oauth_revocations (
    upstream TEXT NOT NULL,
    owner    TEXT NOT NULL,
    server   TEXT NOT NULL,
    issuer   TEXT NOT NULL,
    version  BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    due      BIGINT NOT NULL, -- no attempt before
    sealed   BYTEA NOT NULL,  -- as in oauth_logins
    PRIMARY KEY (upstream, owner, server, issuer, version)
);
CREATE INDEX oauth_revocations_due ON oauth_revocations (due);
