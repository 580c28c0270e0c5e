-- +goose Up
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
