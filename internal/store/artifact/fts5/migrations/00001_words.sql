-- +goose Up
-- Everything said, and apart from it what stands in the title: a word that is
-- everywhere in the one may be rare in the other, and is then found at once.
CREATE VIRTUAL TABLE artifact_words USING fts5 (
    name, tags, description, annotations, creator, parent,
    content = '', contentless_delete = 1, prefix = '3 4 5', tokenize = 'unicode61 remove_diacritics 2'
);
CREATE VIRTUAL TABLE artifact_titles USING fts5 (
    name, tags, creator, parent,
    content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
);

-- +goose Down
DROP TABLE artifact_titles;
DROP TABLE artifact_words;
