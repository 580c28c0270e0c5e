-- +goose Up
UPDATE shares SET thing = thing || ' ' || owner WHERE kind = 'artifact'; -- the same content of two owners is two artifacts

-- +goose Down
UPDATE shares SET thing = substr(thing, 1, length(thing) - length(owner) - 1) WHERE kind = 'artifact';
