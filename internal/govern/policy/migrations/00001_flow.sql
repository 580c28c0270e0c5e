-- +goose Up
CREATE TABLE flow_labels (
    name   TEXT NOT NULL,   -- "session:…", "job:…", "result:…", "talk:…"
    label  TEXT NOT NULL,
    origin TEXT NOT NULL,   -- the tool it was read from
    line   BIGINT NOT NULL, -- of the script that did; 0 when unknown
    at     BIGINT NOT NULL, -- microseconds since 1970
    PRIMARY KEY (name, label)
);

-- +goose Down
DROP TABLE flow_labels;
