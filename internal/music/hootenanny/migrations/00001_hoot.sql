-- +goose Up
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
    position   DOUBLE PRECISION NOT NULL,
    duration   DOUBLE PRECISION NOT NULL,
    behavior   TEXT NOT NULL,
    content_id TEXT NOT NULL,
    name       TEXT NOT NULL
);

CREATE TABLE hoot_markers (
    id       TEXT PRIMARY KEY,
    position DOUBLE PRECISION NOT NULL,
    kind     TEXT NOT NULL,
    metadata TEXT NOT NULL
);

-- +goose Down
DROP TABLE hoot_markers;
DROP TABLE hoot_regions;
DROP TABLE hoot_connections;
DROP TABLE hoot_identity_tags;
DROP TABLE hoot_identity_hints;
DROP TABLE hoot_identities;
DROP TABLE hoot_metadata;
DROP TABLE hoot_variations;
