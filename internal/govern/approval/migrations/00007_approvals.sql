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
    decided_by TEXT NOT NULL,
    carrier      TEXT NOT NULL DEFAULT '',  -- the process that continues the run
    carried      BIGINT NOT NULL DEFAULT 0,  -- end of its lease
    asker        TEXT NOT NULL DEFAULT '',  -- JSON: whose run it is
    org          TEXT NOT NULL DEFAULT '',  -- the asker's organisation
    role         TEXT NOT NULL DEFAULT '',  -- whoever decides must have it
    needed       BIGINT NOT NULL DEFAULT 1,  -- how many people must agree
    notice       BIGINT NOT NULL DEFAULT 0,  -- when people are told of it next; 0 is never
    notice_tries BIGINT NOT NULL DEFAULT 0,
    incomplete   TEXT NOT NULL DEFAULT '',  -- why the plan ends too early
    undoes       TEXT NOT NULL DEFAULT ''  -- the job that the run undoes
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
    maker   TEXT NOT NULL DEFAULT '', -- JSON: who decided
    UNIQUE (scope, subject)
);

CREATE TABLE approval_records (
    approval TEXT NOT NULL REFERENCES approvals (id) ON DELETE CASCADE,
    number   BIGINT NOT NULL, -- 1, 2, 3 …
    data     BYTEA NOT NULL,  -- steps of the run's journal
    PRIMARY KEY (approval, number)
);

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

CREATE TABLE approval_delegations (
    person   TEXT NOT NULL,    -- who has the role
    org      TEXT NOT NULL,
    role     TEXT NOT NULL,
    delegate TEXT NOT NULL,    -- the person who decides in their place
    created  BIGINT NOT NULL,
    until    BIGINT NOT NULL,
    PRIMARY KEY (person, org, role)
);
CREATE INDEX approval_delegations_by_delegate ON approval_delegations (delegate, until);


CREATE TABLE approval_mails ( -- who is told of a request by mail
    approval TEXT NOT NULL REFERENCES approvals (id) ON DELETE CASCADE,
    person   TEXT NOT NULL,    -- empty: nobody has the role
    next     BIGINT NOT NULL,  -- when it is sent, or tried again; 0 is never
    tries    BIGINT NOT NULL,
    sent     BIGINT NOT NULL,  -- 0: not yet
    PRIMARY KEY (approval, person)
);
CREATE INDEX approval_mails_by_person ON approval_mails (person, sent);
