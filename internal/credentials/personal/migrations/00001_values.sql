-- +goose Up
CREATE TABLE personal_values (
    owner   TEXT NOT NULL,   -- the principal whose value it is
    name    TEXT NOT NULL,
    org     TEXT NOT NULL,
    sealed  BYTEA NOT NULL,  -- bound to table, org, owner and name
    updated BIGINT NOT NULL, -- microseconds since 1970
    PRIMARY KEY (owner, name)
);

-- +goose Down
DROP TABLE personal_values;
