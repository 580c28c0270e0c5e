-- +goose Up
ALTER TABLE job_schedules ADD COLUMN reason TEXT NOT NULL DEFAULT ''; -- why it was paused; '' if somebody did it

-- +goose Down
ALTER TABLE job_schedules DROP COLUMN reason;
