-- +goose Up
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

ALTER TABLE hoot_regions ADD COLUMN project TEXT NOT NULL DEFAULT 'default';
ALTER TABLE hoot_markers ADD COLUMN project TEXT NOT NULL DEFAULT 'default';
CREATE INDEX hoot_regions_by_project ON hoot_regions (project, position, id);
CREATE INDEX hoot_markers_by_project ON hoot_markers (project, position, id);

-- +goose Down
DROP INDEX hoot_markers_by_project;
DROP INDEX hoot_regions_by_project;
ALTER TABLE hoot_markers DROP COLUMN project;
ALTER TABLE hoot_regions DROP COLUMN project;
DROP TABLE hoot_project_sessions;
DROP TABLE hoot_projects;
