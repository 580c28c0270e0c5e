-- +goose Up
CREATE TABLE artifact_words (
    number BIGINT PRIMARY KEY,
    words  TSVECTOR NOT NULL -- of name, tags, description and annotations
);
CREATE INDEX artifact_words_by_word ON artifact_words USING gin (words);

-- +goose Down
DROP TABLE artifact_words;
