-- +goose Up
CREATE TABLE as_assertions ( -- identity assertion grants that were used
	issuer  TEXT NOT NULL,
	id      BYTEA NOT NULL, -- hash of its jti
	expires BIGINT NOT NULL, -- when nobody accepts it any more
	PRIMARY KEY (issuer, id)
);
CREATE INDEX as_assertions_by_end ON as_assertions (expires);

-- +goose Down
DROP TABLE as_assertions;
