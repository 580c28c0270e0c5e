-- +goose Up
ALTER TABLE approvals DROP COLUMN notice; -- notices are deliveries
ALTER TABLE approvals DROP COLUMN notice_tries;

-- +goose Down
ALTER TABLE approvals ADD COLUMN notice BIGINT NOT NULL DEFAULT 0;
ALTER TABLE approvals ADD COLUMN notice_tries BIGINT NOT NULL DEFAULT 0;
