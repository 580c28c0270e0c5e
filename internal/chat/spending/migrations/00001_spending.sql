-- +goose Up
CREATE TABLE spending_days (
    org         TEXT NOT NULL,
    person      TEXT NOT NULL,
    day         BIGINT NOT NULL, -- since 1970, UTC
    turns       BIGINT NOT NULL,
    input       BIGINT NOT NULL,
    output      BIGINT NOT NULL,
    cache_read  BIGINT NOT NULL,
    cache_write BIGINT NOT NULL,
    cost        DOUBLE PRECISION NOT NULL, -- US dollars
    PRIMARY KEY (org, person, day)
);
CREATE INDEX spending_days_by_day ON spending_days (day, org);

CREATE TABLE spending_turns (
    id          TEXT PRIMARY KEY, -- request_id
    org         TEXT NOT NULL,
    person      TEXT NOT NULL,
    model       TEXT NOT NULL,   -- that answered last
    requests    BIGINT NOT NULL, -- to the model
    input       BIGINT NOT NULL,
    output      BIGINT NOT NULL,
    cache_read  BIGINT NOT NULL,
    cache_write BIGINT NOT NULL,
    cost        DOUBLE PRECISION NOT NULL,
    began       BIGINT NOT NULL  -- microseconds since 1970
);
CREATE INDEX spending_turns_by_person ON spending_turns (org, person, began);
CREATE INDEX spending_turns_by_org ON spending_turns (org, began);
CREATE INDEX spending_turns_by_age ON spending_turns (began);

-- +goose Down
DROP TABLE spending_turns;
DROP TABLE spending_days;
