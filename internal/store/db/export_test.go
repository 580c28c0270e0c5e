package db

import "time"

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
