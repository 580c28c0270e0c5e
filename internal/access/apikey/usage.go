package apikey

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
)

// tally counts how much of a day's budget is used.
type tally struct {
	day   int64 // since 1970, in UTC
	known int64 // by all nodes, when it was last stored
	fresh int64 // since then, by this node
}

const dayLength = 24 * time.Hour

func dayOf(t time.Time) int64 { return t.Unix() / int64(dayLength.Seconds()) }

// Spend counts a call against a principal's daily budget, or refuses it. The calls of
// other nodes are counted within seconds.
func (s *Store) Spend(ctx context.Context, p principal.Principal) error {
	for _, l := range p.Limited() {
		if l.Budget <= 0 {
			continue
		}
		if err := s.spend(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) spend(ctx context.Context, p principal.Limited) error {
	now := s.options.Now()
	today := dayOf(now)
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tallies[p.ID]
	if t == nil || t.day != today {
		s.mu.Unlock()
		known, err := s.spent(ctx, p.ID, today)
		s.mu.Lock()
		if err != nil {
			return err
		}
		if t = s.tallies[p.ID]; t == nil || t.day != today {
			t = &tally{day: today, known: known}
			s.tallies[p.ID] = t
		}
	}
	if t.known+t.fresh >= int64(p.Budget) {
		tomorrow := time.Unix((today+1)*int64(dayLength.Seconds()), 0)
		return principal.Exceeded{What: "tool calls", Of: p.Title, Most: p.Budget, Per: "day", After: tomorrow.Sub(now)}.Fault()
	}
	t.fresh++
	return nil
}

// spent is the stored usage of a day.
func (s *Store) spent(ctx context.Context, id string, day int64) (calls int64, err error) {
	err = s.db.QueryRow(ctx, "SELECT calls FROM access_use WHERE principal = $1 AND day = $2", id, day).Scan(&calls)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return calls, err
}

// flushEvery is how often usage is stored.
const flushEvery = 5 * time.Second

// Run stores usage periodically, and reads the keys again after notifications and
// periodically, even without requests: open streams must end when their key is revoked.
// It returns when ctx ends.
func (s *Store) Run(ctx context.Context) {
	var ear sync.WaitGroup
	defer ear.Wait()
	ear.Go(func() { s.listen(ctx) })
	look, flush := time.NewTicker(s.options.MaxAge), time.NewTicker(flushEvery)
	defer look.Stop()
	defer flush.Stop()
	for {
		var err error
		select {
		case <-look.C:
			err = s.renew(ctx)
		case <-flush.C:
			err = s.Flush(ctx)
		case <-ctx.Done():
			_ = s.Flush(context.WithoutCancel(ctx)) // an error loses a few seconds of counting
			return
		}
		if err != nil && ctx.Err() == nil {
			s.options.Log.WarnContext(ctx, "usage of keys not stored", "error", err)
		}
	}
}

// listen reads the keys again after each notification.
func (s *Store) listen(ctx context.Context) {
	_ = s.db.Listen(ctx, Topic, func(db.Notification) { // it ends with ctx
		if err := s.Refresh(ctx); err != nil && ctx.Err() == nil {
			s.options.Log.WarnContext(ctx, "keys not read again", "error", err)
		}
	})
}

// Flush stores when keys were used and how much of their budgets, and reads the usage of
// other nodes.
func (s *Store) Flush(ctx context.Context) error {
	s.mu.Lock()
	used := maps.Clone(s.used)
	clear(s.used)
	spent := map[string]tally{}
	for id, t := range s.tallies {
		spent[id] = *t
	}
	s.mu.Unlock()
	if len(used) == 0 && len(spent) == 0 {
		return nil
	}
	totals := map[string]int64{}
	err := s.db.Write(ctx, func(tx *db.Tx) error {
		for hash, at := range used {
			if _, err := tx.Exec(ctx, "UPDATE access_keys SET used = $2 WHERE hash = $1 AND used < $2", hash[:], db.UnixMicro(at)); err != nil {
				return err
			}
		}
		for id, t := range spent {
			var total int64
			err := tx.QueryRow(ctx, `INSERT INTO access_use (principal, day, calls) VALUES ($1, $2, $3)
				ON CONFLICT (principal, day) DO UPDATE SET calls = access_use.calls + excluded.calls RETURNING calls`, id, t.day, t.fresh).Scan(&total)
			if err != nil {
				return err
			}
			totals[id] = total
		}
		_, err := tx.Exec(ctx, "DELETE FROM access_use WHERE day < $1", dayOf(s.options.Now())-30)
		return err
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, total := range totals {
		if t := s.tallies[id]; t.day == spent[id].day {
			t.known, t.fresh = total, t.fresh-spent[id].fresh
		}
	}
	return nil
}
