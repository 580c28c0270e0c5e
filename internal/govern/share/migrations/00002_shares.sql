-- +goose Up
CREATE TABLE shares (
    id        TEXT PRIMARY KEY,
    org       TEXT NOT NULL,   -- of the owner; shares reach nobody outside of it
    kind      TEXT NOT NULL,
    thing     TEXT NOT NULL,
    recipient TEXT NOT NULL,   -- person:ID, role:NAME or org
    may       TEXT NOT NULL,   -- see, use or edit
    owner     TEXT NOT NULL,   -- the principal whose thing it is
    maker     TEXT NOT NULL,   -- the principal who shares it: the owner or an administrator
    created   BIGINT NOT NULL, -- microseconds since 1970
    UNIQUE (kind, thing, recipient)
);
CREATE INDEX shares_by_recipient ON shares (org, recipient, kind);
CREATE INDEX shares_by_owner ON shares (owner);
