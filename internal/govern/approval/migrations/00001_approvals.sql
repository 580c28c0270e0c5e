-- +goose Up
CREATE TABLE approvals (
    id         TEXT PRIMARY KEY,
    run        TEXT NOT NULL,   -- "job:…" or "run:…"
    owner      TEXT NOT NULL,
    name       TEXT NOT NULL,
    hash       TEXT NOT NULL,
    language   TEXT NOT NULL,
    subject    TEXT NOT NULL,   -- "git.push", "fs.write"
    space      TEXT NOT NULL,   -- "git", "fs"
    state      TEXT NOT NULL,   -- pending, allowed, denied, withdrawn
    plan       BYTEA NOT NULL,  -- JSON
    digests    TEXT NOT NULL,   -- of the plan's entries, separated by blanks
    certain    BOOLEAN NOT NULL,
    complete   BOOLEAN NOT NULL,
    output     BYTEA,           -- JSON
    kept       BYTEA,           -- what the runner needs to continue
    outcome    BYTEA,           -- JSON: the outcome of the run, unless it is a job
    created    BIGINT NOT NULL, -- times are microseconds since 1970
    expires    BIGINT NOT NULL,
    decided    BIGINT NOT NULL, -- 0 while it is pending
    decided_by TEXT NOT NULL
);
CREATE INDEX approvals_by_run ON approvals (run);
CREATE INDEX approvals_by_state ON approvals (state, created);
CREATE INDEX approvals_by_decision ON approvals (decided);
CREATE TABLE approval_rules (
    id      TEXT PRIMARY KEY,
    scope   TEXT NOT NULL,      -- tool, namespace, script
    subject TEXT NOT NULL,
    allow   BOOLEAN NOT NULL,
    created BIGINT NOT NULL,
    made_by TEXT NOT NULL,
    UNIQUE (scope, subject)
);

-- +goose Down
DROP TABLE approval_rules;
DROP TABLE approvals;
