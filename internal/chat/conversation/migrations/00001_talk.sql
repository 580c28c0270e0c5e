-- +goose Up
CREATE TABLE talk_turns (
    id          TEXT PRIMARY KEY,
    org         TEXT NOT NULL,
    person      TEXT NOT NULL,
    seq         BIGINT NOT NULL, -- the order in which a person's messages came
    message_key TEXT NOT NULL,   -- the client's own; the same key is the same message
    message     TEXT NOT NULL,   -- JSON
    status      TEXT NOT NULL,   -- waiting, running, done, failed
    attempts    BIGINT NOT NULL,
    reply       TEXT NOT NULL,   -- JSON, of a turn that is done
    failure     TEXT NOT NULL,   -- JSON, of a turn that failed
    created     BIGINT NOT NULL, -- times are microseconds since 1970
    ended       BIGINT NOT NULL,
    UNIQUE (org, person, seq)
);
CREATE UNIQUE INDEX talk_turns_by_key ON talk_turns (org, person, message_key) WHERE message_key <> '';
CREATE INDEX talk_turns_unfinished ON talk_turns (status, org, person, seq) WHERE status IN ('waiting', 'running');

-- What is known of a person, or, where person is empty, of an organisation.
CREATE TABLE talk_documents (
    org     TEXT NOT NULL,
    person  TEXT NOT NULL,
    kind    TEXT NOT NULL,
    name    TEXT NOT NULL, -- where there may be several of a kind
    body    TEXT NOT NULL, -- JSON
    updated BIGINT NOT NULL,
    PRIMARY KEY (org, person, kind, name)
);

CREATE TABLE talk_usage (
    org         TEXT NOT NULL,
    person      TEXT NOT NULL,
    day         BIGINT NOT NULL, -- since 1970
    turns       BIGINT NOT NULL,
    input       BIGINT NOT NULL,
    output      BIGINT NOT NULL,
    cache_read  BIGINT NOT NULL,
    cache_write BIGINT NOT NULL,
    cost        DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (org, person, day)
);

-- +goose Down
DROP TABLE talk_usage;
DROP TABLE talk_documents;
DROP TABLE talk_turns;
