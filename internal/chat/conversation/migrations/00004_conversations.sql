-- +goose Up
-- Which of a person's conversations a message belongs to: chat_id and thread_id.
ALTER TABLE talk_turns ADD COLUMN conversation TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE talk_turns DROP COLUMN conversation;
