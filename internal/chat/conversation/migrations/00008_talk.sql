-- +goose Up
CREATE TABLE talk_turns (
    id           TEXT PRIMARY KEY,
    org          TEXT NOT NULL,
    person       TEXT NOT NULL,
    conversation TEXT NOT NULL DEFAULT '', -- which of the person's: chat_id and thread_id
    seq          BIGINT NOT NULL, -- the order in which a person's messages came
    message_key  TEXT NOT NULL,   -- the client's own; the same key is the same message
    message      TEXT NOT NULL,   -- JSON
    status       TEXT NOT NULL,   -- waiting, running, done, failed
    attempts     BIGINT NOT NULL,
    reply        TEXT NOT NULL,   -- JSON, of a turn that is done
    failure      TEXT NOT NULL,   -- JSON, of a turn that failed
    created      BIGINT NOT NULL, -- times are microseconds since 1970
    ended        BIGINT NOT NULL,
    node         TEXT NOT NULL DEFAULT '', -- that answers a message that is not answered yet, while it lives
    UNIQUE (org, person, seq)
);
CREATE UNIQUE INDEX talk_turns_by_key ON talk_turns (org, person, message_key) WHERE message_key <> '';
CREATE INDEX talk_turns_unfinished ON talk_turns (status, org, person, seq) WHERE status IN ('waiting', 'running');
-- The latest messages of a conversation, which every turn reads.
CREATE INDEX talk_turns_by_conversation ON talk_turns (org, person, conversation, seq);

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

-- What a turn has done so far, until it is answered: see agent.Journal.
CREATE TABLE talk_steps (
    turn      TEXT NOT NULL REFERENCES talk_turns (id) ON DELETE CASCADE,
    iteration BIGINT NOT NULL,
    call      BIGINT NOT NULL,
    data      TEXT NOT NULL, -- JSON; empty while the outcome of a call is unknown
    PRIMARY KEY (turn, iteration, call)
);

-- What the agent did before it called tools of a client that keeps its conversation itself.
CREATE TABLE talk_client_calls (
    id      TEXT PRIMARY KEY, -- of the first call
    org     TEXT NOT NULL,
    person  TEXT NOT NULL,
    steps   TEXT NOT NULL,    -- JSON: messages to the model
    created BIGINT NOT NULL
);
CREATE INDEX talk_client_calls_by_age ON talk_client_calls (created);
CREATE INDEX talk_client_calls_by_person ON talk_client_calls (org, person);

-- The images, sounds and files of a message and of the results of its tools.
CREATE TABLE talk_media (
    turn TEXT NOT NULL REFERENCES talk_turns (id) ON DELETE CASCADE,
    id   TEXT NOT NULL, -- within the turn
    name TEXT NOT NULL,
    mime TEXT NOT NULL,
    data BYTEA NOT NULL,
    PRIMARY KEY (turn, id)
);

-- +goose Down
DROP TABLE talk_media;
DROP TABLE talk_client_calls;
DROP TABLE talk_steps;
DROP TABLE talk_documents;
DROP TABLE talk_turns;
