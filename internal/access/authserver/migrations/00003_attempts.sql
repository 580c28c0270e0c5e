-- +goose Up
CREATE TABLE as_attempts ( -- registrations, device logins and wrong codes of some minutes
	id      BYTEA PRIMARY KEY, -- hash of what is counted, whose it is, and when it begins
	count   BIGINT NOT NULL,
	expires BIGINT NOT NULL
);
CREATE INDEX as_attempts_by_end ON as_attempts (expires);

-- +goose Down
DROP TABLE as_attempts;
