-- +goose Up
CREATE TABLE quota_orgs (
	org  TEXT NOT NULL,
	kind TEXT NOT NULL,   -- what is counted
	day  BIGINT NOT NULL, -- since 1970, in UTC
	used BIGINT NOT NULL, -- or taken by a node that uses it
	PRIMARY KEY (org, kind, day)
);

-- +goose Down
DROP TABLE quota_orgs;
