-- +goose Up
-- Who answers a message that is not answered yet: a node, while it lives.
ALTER TABLE talk_turns ADD COLUMN node TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE talk_turns DROP COLUMN node;
