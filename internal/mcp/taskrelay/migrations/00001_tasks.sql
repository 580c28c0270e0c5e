-- +goose Up
CREATE TABLE relayed_tasks (
    id        TEXT PRIMARY KEY,
    owner     TEXT NOT NULL,   -- the principal who made the call
    space     TEXT NOT NULL,   -- the upstream
    tool      TEXT NOT NULL,
    remote    TEXT NOT NULL,   -- the upstream's id of the task
    caps      TEXT NOT NULL,   -- what the client can be asked: JSON, or empty for everything
    node      TEXT NOT NULL,   -- the node that follows the task
    state     TEXT NOT NULL,
    message   TEXT NOT NULL,
    poll      BIGINT NOT NULL, -- milliseconds
    created   BIGINT NOT NULL, -- the database's time, in microseconds since 1970, like the following
    updated   BIGINT NOT NULL,
    expires   BIGINT NOT NULL,
    ttl       BIGINT NOT NULL, -- milliseconds from its creation, as clients are told; 0: not said
    questions TEXT NOT NULL,   -- open questions by key: JSON
    asked     BIGINT NOT NULL, -- how many questions were asked so far
    answers   TEXT NOT NULL,   -- answers that the upstream has not been given yet: JSON
    cancelled BIGINT NOT NULL, -- 1: a client wants it cancelled
    result    TEXT NOT NULL,   -- the result of the call, or empty
    error     TEXT NOT NULL    -- why there is no result: JSON, or empty
);
CREATE INDEX relayed_tasks_by_owner ON relayed_tasks (owner, created);
CREATE INDEX relayed_tasks_by_node ON relayed_tasks (node, state);

-- +goose Down
DROP TABLE relayed_tasks;
