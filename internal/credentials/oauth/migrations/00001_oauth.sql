-- +goose Up
-- Times are microseconds since 1970. What is sealed is encrypted, and bound to
-- the upstream and issuer beside it.
CREATE TABLE oauth_logins (
    upstream      TEXT NOT NULL,
    server        TEXT NOT NULL,   -- the URL that tokens are for
    issuer        TEXT NOT NULL,
    scopes        TEXT NOT NULL,   -- granted, with spaces between
    expires       BIGINT NOT NULL, -- of the access token; 0 when unknown
    updated       BIGINT NOT NULL,
    version       BIGINT NOT NULL, -- grows with every change
    claimed_until BIGINT NOT NULL, -- end of the lease of the node that renews the token
    sealed        BYTEA NOT NULL,
    PRIMARY KEY (upstream, server, issuer)
);
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
    sealed   BYTEA NOT NULL
);
CREATE TABLE oauth_challenges (
    upstream TEXT NOT NULL,
    server   TEXT NOT NULL,
    metadata TEXT NOT NULL,        -- where the server's metadata is, if it said so
    scopes   TEXT NOT NULL,        -- that it asked for
    error    TEXT NOT NULL,
    PRIMARY KEY (upstream, server)
);
