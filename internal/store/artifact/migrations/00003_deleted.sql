-- +goose Up
-- Artifacts that were deleted and can still be restored.
CREATE TABLE artifacts_deleted (
    hash       TEXT PRIMARY KEY,
    record     TEXT NOT NULL, -- all metadata as JSON
    deleted_at BIGINT NOT NULL
);

-- +goose Down
DROP TABLE artifacts_deleted;
