-- +goose Up
-- What a turn has done so far, until it is answered: see agent.Journal.
CREATE TABLE talk_steps (
    turn      TEXT NOT NULL REFERENCES talk_turns (id) ON DELETE CASCADE,
    iteration BIGINT NOT NULL,
    call      BIGINT NOT NULL,
    data      TEXT NOT NULL, -- JSON; empty while the outcome of a call is unknown
    PRIMARY KEY (turn, iteration, call)
);

-- +goose Down
DROP TABLE talk_steps;
