-- +goose Up
-- The latest messages of a conversation, which every turn reads.
CREATE INDEX talk_turns_by_conversation ON talk_turns (org, person, conversation, seq);

-- +goose Down
DROP INDEX talk_turns_by_conversation;
