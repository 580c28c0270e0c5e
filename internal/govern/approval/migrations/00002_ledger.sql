-- +goose Up
ALTER TABLE approvals ADD COLUMN carrier TEXT NOT NULL DEFAULT '';  -- the process that continues the run
ALTER TABLE approvals ADD COLUMN carried BIGINT NOT NULL DEFAULT 0; -- end of its lease
CREATE TABLE approval_records (
    approval TEXT NOT NULL REFERENCES approvals (id) ON DELETE CASCADE,
    number   BIGINT NOT NULL, -- 1, 2, 3 …
    data     BYTEA NOT NULL,  -- steps of the run's journal
    PRIMARY KEY (approval, number)
);

-- +goose Down
DROP TABLE approval_records;
ALTER TABLE approvals DROP COLUMN carried;
ALTER TABLE approvals DROP COLUMN carrier;
