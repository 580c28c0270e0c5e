package db

import (
	"time"

	"github.com/jackc/pgx/v5"
)

// SetCancelTimeout sets how long servers may take to cancel a statement.
func SetCancelTimeout(timeout time.Duration) { cancelTimeout = timeout }

// Waiting returns the number of Writes that are queued for a shared transaction, on
// Postgres.
func Waiting(d *DB) int {
	w := d.writer.(*serializableWriter)
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting)
}

// ConnConfigs returns the configurations of connections that run statements and of those
// that listen.
func ConnConfigs(d *DB) (statements, listening *pgx.ConnConfig) {
	p := d.dialect.(*postgres)
	return p.config.ConnConfig.Copy(), p.plain.ConnConfig.Copy()
}
