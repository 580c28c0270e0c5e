-- +goose Up
CREATE TABLE artifacts (
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
CREATE INDEX artifacts_by_creator ON artifacts (creator, number);
CREATE INDEX artifacts_by_parent ON artifacts (parent, number);
CREATE INDEX artifacts_by_name ON artifacts (name, number);

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

-- +goose Down
DROP TABLE artifact_annotations;
DROP TABLE artifact_tags;
DROP TABLE artifacts;
