-- +goose Up
-- The same content of two owners is two artifacts. Those without an owner are the program's
-- own, and those from before artifacts had owners: everybody sees them.
CREATE TABLE owned_artifacts (
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
INSERT INTO owned_artifacts (hash, owner, person, org, number, size, mime, creator, parent, name, description, created_at)
    SELECT hash, '', '', '', number, size, mime, creator, parent, name, description, created_at FROM artifacts;
CREATE TABLE owned_artifact_tags (
    tag    TEXT NOT NULL,
    number BIGINT NOT NULL REFERENCES owned_artifacts (number),
    PRIMARY KEY (tag, number)
);
INSERT INTO owned_artifact_tags (tag, number) SELECT tag, number FROM artifact_tags;
CREATE TABLE owned_artifact_annotations (
    number     BIGINT NOT NULL REFERENCES owned_artifacts (number),
    place      BIGINT NOT NULL,
    message    TEXT NOT NULL,
    vibe       TEXT NOT NULL,
    source     TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (number, place)
);
INSERT INTO owned_artifact_annotations (number, place, message, vibe, source, created_at)
    SELECT number, place, message, vibe, source, created_at FROM artifact_annotations;
DROP TABLE artifact_annotations;
DROP TABLE artifact_tags;
DROP TABLE artifacts;
ALTER TABLE owned_artifacts RENAME TO artifacts;
ALTER TABLE owned_artifact_tags RENAME TO artifact_tags;
ALTER TABLE owned_artifact_annotations RENAME TO artifact_annotations;
CREATE INDEX artifacts_by_creator ON artifacts (creator, number);
CREATE INDEX artifacts_by_parent ON artifacts (parent, number);
CREATE INDEX artifacts_by_name ON artifacts (name, number);
CREATE INDEX artifacts_by_owner ON artifacts (owner, number);
CREATE INDEX artifacts_by_org ON artifacts (org, number);
CREATE INDEX artifact_tags_by_number ON artifact_tags (number);

CREATE TABLE owned_artifacts_deleted (
    hash       TEXT NOT NULL,
    owner      TEXT NOT NULL,
    person     TEXT NOT NULL,
    org        TEXT NOT NULL,
    record     TEXT NOT NULL, -- all metadata as JSON
    deleted_at BIGINT NOT NULL,
    PRIMARY KEY (hash, owner, person, org)
);
INSERT INTO owned_artifacts_deleted (hash, owner, person, org, record, deleted_at)
    SELECT hash, '', '', '', record, deleted_at FROM artifacts_deleted;
DROP TABLE artifacts_deleted;
ALTER TABLE owned_artifacts_deleted RENAME TO artifacts_deleted;

-- Only owners may read a content that is restricted; everybody the others.
ALTER TABLE contents ADD COLUMN restricted BIGINT NOT NULL DEFAULT 0;
INSERT INTO contents (hash, size, mime, created_at)
    SELECT hash, size, mime, created_at FROM artifacts WHERE hash NOT IN (SELECT hash FROM contents);

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

-- +goose Down
-- Of the artifacts of one content the first stays.
DROP TABLE content_owners;
ALTER TABLE contents DROP COLUMN restricted;
CREATE TABLE first_artifacts (
    hash        TEXT PRIMARY KEY,
    number      BIGINT NOT NULL UNIQUE,
    size        BIGINT NOT NULL,
    mime        TEXT NOT NULL,
    creator     TEXT NOT NULL,
    parent      TEXT NOT NULL,
    name        TEXT NOT NULL,
    description TEXT NOT NULL,
    created_at  BIGINT NOT NULL
);
INSERT INTO first_artifacts SELECT hash, number, size, mime, creator, parent, name, description, created_at FROM artifacts
    WHERE number IN (SELECT MIN(number) FROM artifacts GROUP BY hash);
CREATE TABLE first_artifact_tags (
    tag    TEXT NOT NULL,
    number BIGINT NOT NULL REFERENCES first_artifacts (number),
    PRIMARY KEY (tag, number)
);
INSERT INTO first_artifact_tags SELECT tag, number FROM artifact_tags WHERE number IN (SELECT number FROM first_artifacts);
CREATE TABLE first_artifact_annotations (
    number     BIGINT NOT NULL REFERENCES first_artifacts (number),
    place      BIGINT NOT NULL,
    message    TEXT NOT NULL,
    vibe       TEXT NOT NULL,
    source     TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (number, place)
);
INSERT INTO first_artifact_annotations SELECT number, place, message, vibe, source, created_at FROM artifact_annotations
    WHERE number IN (SELECT number FROM first_artifacts);
DROP TABLE artifact_annotations;
DROP TABLE artifact_tags;
DROP TABLE artifacts;
ALTER TABLE first_artifacts RENAME TO artifacts;
ALTER TABLE first_artifact_tags RENAME TO artifact_tags;
ALTER TABLE first_artifact_annotations RENAME TO artifact_annotations;
CREATE INDEX artifacts_by_creator ON artifacts (creator, number);
CREATE INDEX artifacts_by_parent ON artifacts (parent, number);
CREATE INDEX artifacts_by_name ON artifacts (name, number);
CREATE INDEX artifact_tags_by_number ON artifact_tags (number);
DROP TABLE artifacts_deleted;
CREATE TABLE artifacts_deleted (
    hash       TEXT PRIMARY KEY,
    record     TEXT NOT NULL,
    deleted_at BIGINT NOT NULL
);
