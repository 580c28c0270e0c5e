-- +goose Up
-- Each owner of an artifact has metadata and sets of variations of their own. Owners are those
-- of the artifacts.
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

CREATE TABLE hoot_identities (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX hoot_identities_by_name ON hoot_identities (name);

CREATE TABLE hoot_identity_hints (
    identity   TEXT NOT NULL REFERENCES hoot_identities (id),
    kind       TEXT NOT NULL,
    value      TEXT NOT NULL,
    confidence DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (identity, kind, value)
);

CREATE TABLE hoot_identity_tags (
    identity  TEXT NOT NULL REFERENCES hoot_identities (id),
    namespace TEXT NOT NULL,
    value     TEXT NOT NULL,
    PRIMARY KEY (identity, namespace, value)
);
CREATE INDEX hoot_identity_tags_by_value ON hoot_identity_tags (namespace, value);

CREATE TABLE hoot_connections (
    id            TEXT PRIMARY KEY,
    from_identity TEXT NOT NULL REFERENCES hoot_identities (id),
    from_port     TEXT NOT NULL,
    to_identity   TEXT NOT NULL REFERENCES hoot_identities (id),
    to_port       TEXT NOT NULL,
    transport     TEXT NOT NULL,
    UNIQUE (from_identity, from_port, to_identity, to_port)
);

CREATE TABLE hoot_regions (
    id         TEXT PRIMARY KEY,
    project    TEXT NOT NULL,
    position   DOUBLE PRECISION NOT NULL,
    duration   DOUBLE PRECISION NOT NULL,
    behavior   TEXT NOT NULL,
    content_id TEXT NOT NULL,
    name       TEXT NOT NULL
);
CREATE INDEX hoot_regions_by_project ON hoot_regions (project, position, id);

CREATE TABLE hoot_markers (
    id       TEXT PRIMARY KEY,
    project  TEXT NOT NULL,
    position DOUBLE PRECISION NOT NULL,
    kind     TEXT NOT NULL,
    metadata TEXT NOT NULL
);
CREATE INDEX hoot_markers_by_project ON hoot_markers (project, position, id);

CREATE TABLE hoot_projects (
    name       TEXT PRIMARY KEY,
    version    BIGINT NOT NULL,
    status     TEXT NOT NULL,
    tempo      DOUBLE PRECISION NOT NULL,
    position   DOUBLE PRECISION NOT NULL,
    since      BIGINT NOT NULL,
    node       TEXT NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE TABLE hoot_project_sessions (
    session    TEXT PRIMARY KEY,
    project    TEXT NOT NULL,
    updated_at BIGINT NOT NULL
);
