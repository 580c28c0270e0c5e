-- +goose Up
CREATE INDEX ended_by_schedule ON jobs (schedule, finished DESC, id DESC) WHERE finished > 0 AND schedule <> '';

-- +goose Down
DROP INDEX ended_by_schedule;
