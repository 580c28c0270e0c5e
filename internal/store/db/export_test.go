package db

import "time"

// SetCancelTimeout has servers take as long as they need to call something off.
func SetCancelTimeout(patience time.Duration) { cancelTimeout = patience }

// Waiting is how many Writes wait for a transaction to share, on Postgres.
func Waiting(d *DB) int {
	w := d.writer.(*serializableWriter)
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting)
}
