-- +goose Up
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
