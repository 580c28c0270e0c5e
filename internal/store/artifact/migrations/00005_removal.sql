-- +goose Up
-- contents.restricted is 2 while the bytes of a content are being removed.

-- Contents that stay although nobody may have them yet: they are being stored, or were
-- in use a moment ago.
CREATE TABLE content_claims (
    id    TEXT PRIMARY KEY,
    hash  TEXT NOT NULL,
    until BIGINT NOT NULL -- microseconds since 1970
);
CREATE INDEX content_claims_by_hash ON content_claims (hash);

-- How many bytes the contents of an organisation have, each counted once. It says what
-- content_owners does; an organisation without a row was not counted yet.
CREATE TABLE org_storage (
    org   TEXT PRIMARY KEY,
    bytes BIGINT NOT NULL
);

-- +goose Down
DROP TABLE org_storage;
DROP TABLE content_claims;
UPDATE contents SET restricted = 1 WHERE restricted = 2;
