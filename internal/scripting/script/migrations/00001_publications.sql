-- +goose Up
CREATE TABLE publications (
    name   TEXT PRIMARY KEY,
    origin TEXT NOT NULL
);
CREATE TABLE publication_versions (
    name         TEXT NOT NULL,
    version      BIGINT NOT NULL,
    hash         TEXT NOT NULL,
    publisher    TEXT NOT NULL,
    published_at BIGINT NOT NULL,
    PRIMARY KEY (name, version)
);

-- +goose Down
DROP TABLE publication_versions;
DROP TABLE publications;
