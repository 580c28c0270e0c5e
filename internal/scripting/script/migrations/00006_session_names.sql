-- +goose Up
ALTER TABLE sessions ADD COLUMN handle TEXT;                    -- the name by which its owner can use it instead of the id, if any
ALTER TABLE sessions ADD COLUMN runs BIGINT NOT NULL DEFAULT 0; -- turns, also those that changed nothing, when it was last saved
UPDATE sessions SET runs = turns;
CREATE UNIQUE INDEX sessions_by_handle ON sessions (owner, handle);

-- +goose Down
DROP INDEX sessions_by_handle;
ALTER TABLE sessions DROP COLUMN runs;
ALTER TABLE sessions DROP COLUMN handle;
