-- +goose Up
-- A login belongs to the principal whose account it is, or to everybody. What was stored
-- before is shared.
CREATE TABLE oauth_logins_owned (
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
INSERT INTO oauth_logins_owned (upstream, owner, server, issuer, org, state, scopes, expires, updated, version, claimed_until, failures, retry_at, sealed)
SELECT upstream, '', server, issuer, '', 'active', scopes, expires, updated, version, claimed_until, 0, 0, sealed FROM oauth_logins;
DROP TABLE oauth_logins;
ALTER TABLE oauth_logins_owned RENAME TO oauth_logins;
CREATE INDEX oauth_logins_owner ON oauth_logins (owner);

ALTER TABLE oauth_flows ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE oauth_flows ADD COLUMN browser TEXT NOT NULL DEFAULT ''; -- the hash of its cookie; '': any

CREATE TABLE oauth_challenges_owned (
    upstream TEXT NOT NULL,
    owner    TEXT NOT NULL,
    server   TEXT NOT NULL,
    metadata TEXT NOT NULL,        -- where the server's metadata is, if it said so
    scopes   TEXT NOT NULL,        -- that it asked for
    error    TEXT NOT NULL,
    PRIMARY KEY (upstream, owner, server)
);
INSERT INTO oauth_challenges_owned (upstream, owner, server, metadata, scopes, error)
SELECT upstream, '', server, metadata, scopes, error FROM oauth_challenges;
DROP TABLE oauth_challenges;
ALTER TABLE oauth_challenges_owned RENAME TO oauth_challenges;
