-- +goose Up
CREATE TABLE tool_usage (
    org        TEXT NOT NULL,
    owner      TEXT NOT NULL,
    space      TEXT NOT NULL,
    tool       TEXT NOT NULL,
    word       TEXT NOT NULL,
    definition TEXT NOT NULL,             -- fingerprint of the definition it belongs to
    weight     DOUBLE PRECISION NOT NULL, -- when it was used last
    used       BIGINT NOT NULL,           -- microseconds since 1970
    PRIMARY KEY (org, owner, word, space, tool)
);
CREATE INDEX tool_usage_by_word ON tool_usage (org, word);
CREATE INDEX tool_usage_by_tool ON tool_usage (org, owner, space, tool);
CREATE INDEX tool_usage_by_use ON tool_usage (used);

-- +goose Down
DROP TABLE tool_usage;
