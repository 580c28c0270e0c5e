package usage

import (
	"context"

	"github.com/luanette/luanette/internal/store/db"
)

// Forget erases what was learned from the caller of ctx, and returns how many words of
// tools that were.
func (s *Store) Forget(ctx context.Context) (int64, error) {
	who := callerOf(ctx)
	s.waiting.mu.Lock()
	delete(s.waiting.byCaller, who)
	s.waiting.mu.Unlock()
	s.Wait() // what is being written would come after
	return erase(ctx, s.db, `DELETE FROM tool_usage WHERE org = $1 AND owner = $2`, who.org, who.owner)
}

// Erase erases what was learned from all callers, and returns how many words that were.
func (s *Store) Erase(ctx context.Context) (int64, error) {
	s.waiting.mu.Lock()
	clear(s.waiting.byCaller)
	s.waiting.mu.Unlock()
	s.Wait()
	return erase(ctx, s.db, `DELETE FROM tool_usage`)
}

func erase(ctx context.Context, database *db.DB, query string, args ...any) (count int64, err error) {
	err = database.Write(ctx, func(tx *db.Tx) error {
		result, err := tx.Exec(ctx, query, args...)
		if err != nil {
			return err
		}
		count, err = result.RowsAffected()
		return err
	})
	return count, err
}
