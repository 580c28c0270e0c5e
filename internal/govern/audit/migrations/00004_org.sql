-- +goose Up
ALTER TABLE audit_log ADD COLUMN org TEXT NOT NULL DEFAULT '';
CREATE INDEX audit_log_by_org ON audit_log (org, at) WHERE org <> ''; -- most servers have no organisations

-- +goose Down
DROP INDEX audit_log_by_org;
ALTER TABLE audit_log DROP COLUMN org;
