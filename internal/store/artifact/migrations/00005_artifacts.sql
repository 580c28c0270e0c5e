-- +goose Up
-- The same content of two owners is two artifacts. Those without an owner are the program's
-- own: everybody sees them.
CREATE TABLE artifacts (
    hash        TEXT NOT NULL,
    owner       TEXT NOT NULL,
    person      TEXT NOT NULL,
    org         TEXT NOT NULL,
    number      BIGINT NOT NULL UNIQUE,
    size        BIGINT NOT NULL,
    mime        TEXT NOT NULL,
    creator     TEXT NOT NULL,
    parent      TEXT NOT NULL,
    name        TEXT NOT NULL,
    description TEXT NOT NULL,
    created_at  BIGINT NOT NULL,
    PRIMARY KEY (hash, owner, person, org)
);
CREATE INDEX artifacts_by_creator ON artifacts (creator, number);
CREATE INDEX artifacts_by_parent ON artifacts (parent, number);
CREATE INDEX artifacts_by_name ON artifacts (name, number);
CREATE INDEX artifacts_by_owner ON artifacts (owner, number);
CREATE INDEX artifacts_by_org ON artifacts (org, number);

CREATE TABLE artifact_tags (
    tag    TEXT NOT NULL,
    number BIGINT NOT NULL REFERENCES artifacts (number),
    PRIMARY KEY (tag, number)
);
CREATE INDEX artifact_tags_by_number ON artifact_tags (number);

CREATE TABLE artifact_annotations (
    number     BIGINT NOT NULL REFERENCES artifacts (number),
    place      BIGINT NOT NULL,
    message    TEXT NOT NULL,
    vibe       TEXT NOT NULL,
    source     TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (number, place)
);

-- Artifacts that were deleted and can still be restored.
CREATE TABLE artifacts_deleted (
    hash       TEXT NOT NULL,
    owner      TEXT NOT NULL,
    person     TEXT NOT NULL,
    org        TEXT NOT NULL,
    record     TEXT NOT NULL, -- all metadata as JSON
    deleted_at BIGINT NOT NULL,
    PRIMARY KEY (hash, owner, person, org)
);

CREATE TABLE contents (
    hash       TEXT PRIMARY KEY,
    size       BIGINT NOT NULL,
    mime       TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    restricted BIGINT NOT NULL DEFAULT 0 -- 0: everybody may read it; 1: only owners; 2: its bytes are being removed
);

CREATE TABLE content_owners (
    hash       TEXT NOT NULL,
    owner      TEXT NOT NULL,
    person     TEXT NOT NULL,
    org        TEXT NOT NULL,
    size       BIGINT NOT NULL,
    mime       TEXT NOT NULL, -- as this owner stored it: nobody learns that another one did before
    created_at BIGINT NOT NULL,
    PRIMARY KEY (hash, owner, person, org)
);
CREATE INDEX content_owners_by_org ON content_owners (org, hash, size);
CREATE INDEX content_owners_by_owner ON content_owners (owner);

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
