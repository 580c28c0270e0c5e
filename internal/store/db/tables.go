package db

import "context"

// Tables returns the names of all tables of ours.
func (t *Tx) Tables(ctx context.Context) ([]string, error) {
	query := "SELECT name FROM sqlite_master WHERE type = 'table'"
	if t.dialect.kind() == Postgres {
		query = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
	}
	return All(ctx, t, func(row Scanner) (name string, err error) { return name, row.Scan(&name) }, query)
}
