-- +goose Up
ALTER TABLE approvals ADD COLUMN asker TEXT NOT NULL DEFAULT '';   -- JSON: whose run it is; empty in rows of older versions
ALTER TABLE approvals ADD COLUMN org TEXT NOT NULL DEFAULT '';     -- the asker's organisation
ALTER TABLE approvals ADD COLUMN role TEXT NOT NULL DEFAULT '';    -- whoever decides must have it
ALTER TABLE approvals ADD COLUMN needed BIGINT NOT NULL DEFAULT 1; -- how many people must agree
ALTER TABLE approval_rules ADD COLUMN maker TEXT NOT NULL DEFAULT ''; -- JSON: who decided
CREATE TABLE approval_decisions (
    approval TEXT NOT NULL REFERENCES approvals (id) ON DELETE CASCADE,
    decider  TEXT NOT NULL,    -- ID of the principal
    party    TEXT NOT NULL,    -- JSON: the principal
    person   TEXT NOT NULL,    -- whose role counts; empty where no role is needed
    allow    BOOLEAN NOT NULL,
    plan     TEXT NOT NULL,    -- hash of the plan that was decided
    decided  BIGINT NOT NULL,
    PRIMARY KEY (approval, decider)
);

-- +goose Down
DROP TABLE approval_decisions;
ALTER TABLE approval_rules DROP COLUMN maker;
ALTER TABLE approvals DROP COLUMN needed;
ALTER TABLE approvals DROP COLUMN role;
ALTER TABLE approvals DROP COLUMN org;
ALTER TABLE approvals DROP COLUMN asker;
