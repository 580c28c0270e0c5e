-- +goose Up
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

-- +goose Down
DROP TABLE talk_client_calls;
