package usage

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/store/db"
)

// Limits of what is stored.
const (
	mostWeight  = 8   // of a word, however often the tool was called
	mostLessons = 256 // that wait to be written; further ones are dropped
	pruneEvery  = 16  // lessons
	halfLives   = 6   // after which a word that is not used is removed
)

// learn stores lessons without blocking.
func (s *Store) learn(lessons []lesson) {
	if len(lessons) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lessons = append(s.lessons, lessons[:min(len(lessons), mostLessons-len(s.lessons))]...)
	if s.writing {
		return
	}
	s.writing = true
	s.wait.Go(func() {
		for s.write(context.Background()) {
		}
	})
}

// write writes the lessons that wait; false when there are none.
func (s *Store) write(ctx context.Context) bool {
	s.mu.Lock()
	lessons := s.lessons
	s.lessons = nil
	prune := s.written/pruneEvery != (s.written+len(lessons))/pruneEvery
	s.written += len(lessons)
	s.writing = len(lessons) > 0
	s.mu.Unlock()
	if len(lessons) == 0 {
		s.idle.Broadcast()
		return false
	}
	err := s.db.Write(ctx, func(tx *db.Tx) error {
		for i := range lessons {
			if err := s.store(ctx, tx, &lessons[i]); err != nil {
				return err
			}
		}
		if prune {
			return s.prune(ctx, tx, orgsOf(lessons))
		}
		return nil
	})
	if err != nil {
		s.options.Log.WarnContext(ctx, "cannot write what searches taught", "error", err)
	}
	return true
}

// word is a stored word of a tool.
type word struct {
	text   string
	weight float64
	used   time.Time
}

// store adds a lesson to what is known of the tool, and forgets what belongs to another
// definition of it.
func (s *Store) store(ctx context.Context, tx *db.Tx, l *lesson) error {
	if _, err := tx.Exec(ctx, `DELETE FROM tool_usage WHERE org = $1 AND owner = $2 AND space = $3 AND tool = $4 AND definition <> $5`,
		l.caller.org, l.caller.owner, l.ref.Space, l.ref.Name, l.definition); err != nil {
		return err
	}
	known, err := s.known(ctx, tx, l)
	if err != nil {
		return err
	}
	for _, text := range l.words {
		weight := l.credit
		if w, ok := known[text]; ok {
			weight += s.decayed(w.weight, w.used, l.at)
		}
		if _, err := tx.Exec(ctx, `INSERT INTO tool_usage (org, owner, space, tool, word, definition, weight, used)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
			ON CONFLICT (org, owner, word, space, tool) DO UPDATE SET weight = excluded.weight, used = excluded.used`,
			l.caller.org, l.caller.owner, l.ref.Space, l.ref.Name, text, l.definition, min(weight, mostWeight), l.at.UnixMicro()); err != nil {
			return err
		}
	}
	return s.limit(ctx, tx, l.caller)
}

// known returns the words of the lesson's tool.
func (s *Store) known(ctx context.Context, tx *db.Tx, l *lesson) (map[string]word, error) {
	rows, err := db.All(ctx, tx, func(row db.Scanner) (w word, err error) {
		var used int64
		err = row.Scan(&w.text, &w.weight, &used)
		w.used = time.UnixMicro(used)
		return w, err
	}, `SELECT word, weight, used FROM tool_usage WHERE org = $1 AND owner = $2 AND space = $3 AND tool = $4`,
		l.caller.org, l.caller.owner, l.ref.Space, l.ref.Name)
	known := map[string]word{}
	for _, w := range rows {
		known[w.text] = w
	}
	return known, err
}

// decayed is what a weight is worth later.
func (s *Store) decayed(weight float64, since, now time.Time) float64 {
	age := max(0, now.Sub(since))
	return weight * math.Exp2(-float64(age)/float64(s.options.HalfLife))
}

// limit removes the words of a caller beyond the limit, those first that were not used for
// the longest time.
func (s *Store) limit(ctx context.Context, tx *db.Tx, who caller) error {
	_, err := tx.Exec(ctx, `DELETE FROM tool_usage WHERE org = $1 AND owner = $2 AND used <
		(SELECT used FROM tool_usage WHERE org = $3 AND owner = $4 ORDER BY used DESC LIMIT 1 OFFSET $5)`,
		who.org, who.owner, who.org, who.owner, s.options.Words-1)
	return err
}

// orgsOf lists the organisations of those who taught the lessons.
func orgsOf(lessons []lesson) (orgs []string) {
	for i := range lessons {
		if org := lessons[i].caller.org; !slices.Contains(orgs, org) {
			orgs = append(orgs, org)
		}
	}
	return orgs
}

// prune removes the words that are too old, and those of organisations that have too many:
// however much one learns, others forget nothing for it.
func (s *Store) prune(ctx context.Context, tx *db.Tx, orgs []string) error {
	oldest := s.options.Clock.Now().Add(-halfLives * s.options.HalfLife).UnixMicro()
	_, err := tx.Exec(ctx, `DELETE FROM tool_usage WHERE used < $1`, oldest)
	for _, org := range orgs {
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `DELETE FROM tool_usage WHERE org = $1 AND used <
			(SELECT used FROM tool_usage WHERE org = $2 ORDER BY used DESC LIMIT 1 OFFSET $3)`, org, org, s.options.AllWords-1)
	}
	return err
}
