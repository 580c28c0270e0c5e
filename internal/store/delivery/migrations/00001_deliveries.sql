-- +goose Up
CREATE TABLE deliveries (
    id      TEXT PRIMARY KEY, -- the Webhook-Id
    kind    TEXT NOT NULL,    -- whose webhooks: "chat"
    org     TEXT NOT NULL,
    person  TEXT NOT NULL,
    topic   TEXT NOT NULL,    -- the conversation
    url     TEXT NOT NULL,
    origin  TEXT NOT NULL,    -- of the URL
    body    BYTEA NOT NULL,   -- empty when it was delivered
    state   TEXT NOT NULL,    -- waiting, delivered, failed
    number  BIGINT NOT NULL,  -- of tries that have begun
    tries   TEXT NOT NULL,    -- JSON: those that have ended
    created BIGINT NOT NULL,  -- times are microseconds since 1970
    next    BIGINT NOT NULL,  -- the next try; 0 if there is none
    ended   BIGINT NOT NULL   -- 0 while it waits
);
CREATE INDEX deliveries_by_next ON deliveries (next);
CREATE INDEX deliveries_by_end ON deliveries (ended);
CREATE INDEX deliveries_by_org ON deliveries (kind, org, created);

-- +goose Down
DROP TABLE deliveries;
