-- +goose Up
ALTER TABLE approvals ADD COLUMN notice BIGINT NOT NULL DEFAULT 0;       -- when people are told of it next; 0 is never
ALTER TABLE approvals ADD COLUMN notice_tries BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE approvals DROP COLUMN notice_tries;
ALTER TABLE approvals DROP COLUMN notice;
