-- +goose Up
-- What Activity shows of an entry. It is outside of the entry's hash, since it is removed earlier.
ALTER TABLE audit_log ADD COLUMN session TEXT NOT NULL DEFAULT '';
ALTER TABLE audit_log ADD COLUMN own BIGINT NOT NULL DEFAULT 0; -- 1: a read of our own page
ALTER TABLE audit_log ADD COLUMN detail TEXT NOT NULL DEFAULT ''; -- JSON
CREATE INDEX audit_log_by_session ON audit_log (session, at) WHERE session <> '';

CREATE TABLE audit_sessions (
    id      TEXT PRIMARY KEY,
    grouped TEXT NOT NULL,   -- what calls of clients without sessions are grouped by
    who     TEXT NOT NULL,
    name    TEXT NOT NULL,
    org     TEXT NOT NULL,
    agent   TEXT NOT NULL,
    title   TEXT NOT NULL,
    server  TEXT NOT NULL,   -- the first whose tools were called; ends with a plus sign if there are others
    began   BIGINT NOT NULL, -- microseconds since 1970
    latest  BIGINT NOT NULL,
    steps   BIGINT NOT NULL, -- entries, without our own reads
    calls   BIGINT NOT NULL, -- of servers' tools
    failed  BIGINT NOT NULL,
    denied  BIGINT NOT NULL,
    asked   BIGINT NOT NULL,
    worked  BIGINT NOT NULL, -- microseconds
    waited  BIGINT NOT NULL,
    given   BIGINT NOT NULL, -- bytes that the client sent and got
    used    BIGINT NOT NULL, -- bytes that it would have with every tool listed
    words   TEXT NOT NULL    -- what the session is found by, in lower case
);
CREATE INDEX audit_sessions_by_time ON audit_sessions (latest, id);
CREATE INDEX audit_sessions_by_group ON audit_sessions (grouped, latest);
