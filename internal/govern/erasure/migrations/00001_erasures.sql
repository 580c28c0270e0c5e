-- +goose Up
CREATE TABLE erasures ( -- that have begun and are not finished
	person TEXT PRIMARY KEY,
	whole  TEXT NOT NULL,  -- JSON: what is needed to go on, since the other rows of the person are deleted one after the other
	begun  BIGINT NOT NULL -- microseconds since 1970
);

-- +goose Down
DROP TABLE erasures;
