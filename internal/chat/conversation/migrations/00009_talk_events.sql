-- +goose Up
-- What a turn did, for streams that begin after its end.
CREATE TABLE talk_events (
    turn   TEXT PRIMARY KEY REFERENCES talk_turns (id) ON DELETE CASCADE,
    events TEXT NOT NULL, -- JSON
    ended  BIGINT NOT NULL
);
CREATE INDEX talk_events_by_age ON talk_events (ended);

-- +goose Down
DROP TABLE talk_events;
