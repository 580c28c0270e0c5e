-- +goose Up
ALTER TABLE sessions ADD COLUMN run TEXT NOT NULL DEFAULT ''; -- the approved run that left the state so, if one did

-- +goose Down
ALTER TABLE sessions DROP COLUMN run;
