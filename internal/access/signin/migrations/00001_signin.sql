-- +goose Up
CREATE TABLE signin_flows ( -- people who are at their provider
	state    BYTEA PRIMARY KEY, -- SHA-256 of the state parameter
	browser  BYTEA NOT NULL, -- SHA-256 of the cookie of the browser that began
	provider TEXT NOT NULL,
	expires  BIGINT NOT NULL, -- microseconds since 1970
	sealed   BYTEA NOT NULL
);

-- +goose Down
DROP TABLE signin_flows;
