-- +goose Up
-- The same content of two owners is two artifacts, and each has its own metadata and sets of
-- variations. Owners are those of the artifacts.
DROP TABLE hoot_variations;
DROP TABLE hoot_metadata;
CREATE TABLE hoot_variations (
    owner  TEXT NOT NULL,
    person TEXT NOT NULL,
    org    TEXT NOT NULL,
    set_id TEXT NOT NULL,
    place  BIGINT NOT NULL,
    hash   TEXT NOT NULL,
    PRIMARY KEY (owner, person, org, set_id, place)
);
CREATE UNIQUE INDEX hoot_variations_by_hash ON hoot_variations (hash, owner, person, org, set_id);

CREATE TABLE hoot_metadata (
    hash     TEXT NOT NULL,
    owner    TEXT NOT NULL,
    person   TEXT NOT NULL,
    org      TEXT NOT NULL,
    metadata TEXT NOT NULL,
    PRIMARY KEY (hash, owner, person, org)
);

-- Callers without a session are stored by the ID of their principal alone.
DELETE FROM hoot_project_sessions WHERE session LIKE 'user:%';

-- +goose Down
DROP TABLE hoot_metadata;
DROP TABLE hoot_variations;
CREATE TABLE hoot_variations (
    set_id TEXT NOT NULL,
    place  BIGINT NOT NULL,
    hash   TEXT NOT NULL,
    PRIMARY KEY (set_id, place)
);
CREATE UNIQUE INDEX hoot_variations_by_hash ON hoot_variations (hash, set_id);
CREATE TABLE hoot_metadata (
    hash     TEXT PRIMARY KEY,
    metadata TEXT NOT NULL
);
