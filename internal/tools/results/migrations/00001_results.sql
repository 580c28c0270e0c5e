-- +goose Up
CREATE TABLE kept_results (
    owner   TEXT NOT NULL,
    number  BIGINT NOT NULL,
    source  TEXT NOT NULL,   -- the tool it came from
    shape   TEXT NOT NULL,
    size    BIGINT NOT NULL,
    created BIGINT NOT NULL, -- times are microseconds since 1970
    used    BIGINT NOT NULL,
    value   BYTEA NOT NULL,
    PRIMARY KEY (owner, number)
);
CREATE INDEX kept_results_by_use ON kept_results (used);
CREATE TABLE kept_result_numbers (
    owner TEXT PRIMARY KEY,
    last  BIGINT NOT NULL    -- no number is given twice, for models remember them
);
CREATE TABLE learned_shapes (
    space      TEXT NOT NULL,
    tool       TEXT NOT NULL,
    definition TEXT NOT NULL,   -- hash of the definition it belongs to
    version    BIGINT NOT NULL, -- counts every change
    results    BIGINT NOT NULL, -- how many it was learned from
    shape      TEXT NOT NULL,
    learned    BIGINT NOT NULL,
    PRIMARY KEY (space, tool)
);

-- +goose Down
DROP TABLE learned_shapes;
DROP TABLE kept_result_numbers;
DROP TABLE kept_results;
