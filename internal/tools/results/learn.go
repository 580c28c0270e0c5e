package results

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"sync"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/store/db"
)

// How much is looked at.
const (
	learnAll     = 32      // results of a tool; of later ones
	learnEvery   = 32      // only each of so many
	largestTaken = 1 << 20 // bytes of one
	writeEvery   = 64      // lessons, also when nothing new was learned
)

// Learned is what is known of a tool's results from seeing some.
type Learned struct {
	Schema  json.RawMessage // JSON Schema
	Results int             // how many it was learned from
	Version int             // another one says something else
}

// lessons are what was learned, by tool.
type lessons struct {
	mu      sync.Mutex
	byTool  map[tool.Ref]*lesson
	changed map[tool.Ref]bool // and not written yet
	writing bool
	wait    sync.WaitGroup
}

type lesson struct {
	definition string
	version    int
	results    int
	calls      int
	shape      *Shape
}

// Learn takes in what a tool answered.
func (s *Store) Learn(info *tool.Info, result tool.Result) {
	if len(result.Raw) > largestTaken || !s.due(info.Ref) {
		return
	}
	view, err := result.View()
	if err != nil || view.IsError {
		return
	}
	s.learn(info, view.Value())
}

// due counts a call and tells whether its result is to be looked at.
func (s *Store) due(ref tool.Ref) bool {
	s.lessons.mu.Lock()
	defer s.lessons.mu.Unlock()
	l := s.lessons.byTool[ref]
	if l == nil {
		return len(s.lessons.byTool) < s.options.Tools
	}
	l.calls++
	return l.results < learnAll || l.calls%learnEvery == 0
}

func (s *Store) learn(info *tool.Info, value json.RawMessage) {
	definition := fingerprint(info)
	s.lessons.mu.Lock()
	defer s.lessons.mu.Unlock()
	l := s.lessons.byTool[info.Ref]
	switch {
	case l == nil:
		l = &lesson{definition: definition, shape: &Shape{}}
		s.lessons.byTool[info.Ref] = l
	case l.definition != definition: // another tool of the same name
		l.definition, l.shape, l.results = definition, &Shape{}, 0
	}
	before := l.shape.Clone()
	l.shape.Learn(value)
	l.results++
	news := !l.shape.Same(before)
	if news {
		l.version++
	}
	if news || l.results%writeEvery == 0 {
		s.writeLater(info.Ref)
	}
}

// fingerprint tells definitions apart.
func fingerprint(info *tool.Info) string {
	sum := sha256.New()
	sum.Write([]byte(info.Description))
	sum.Write([]byte{0})
	sum.Write(info.Input)
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// Learned tells what is known of a tool's results; ok is false when nothing is.
func (s *Store) Learned(ref tool.Ref) (learned Learned, ok bool) {
	s.lessons.mu.Lock()
	defer s.lessons.mu.Unlock()
	l := s.lessons.byTool[ref]
	if l == nil || l.results == 0 {
		return Learned{}, false
	}
	return Learned{l.shape.Schema(), l.results, l.version}, true
}

// writeLater has what was learned written down by one goroutine; mu is held.
func (s *Store) writeLater(ref tool.Ref) {
	s.lessons.changed[ref] = true
	if s.lessons.writing {
		return
	}
	s.lessons.writing = true
	s.lessons.wait.Go(func() {
		for s.writeLessons(context.Background()) {
		}
	})
}

// writeLessons writes what has changed; false when nothing had.
func (s *Store) writeLessons(ctx context.Context) bool {
	type row struct {
		ref    tool.Ref
		lesson lesson
		shape  []byte
	}
	s.lessons.mu.Lock()
	var rows []row
	for ref := range s.lessons.changed {
		l := *s.lessons.byTool[ref]
		if raw, err := json.Marshal(l.shape); err == nil {
			rows = append(rows, row{ref, l, raw})
		}
	}
	clear(s.lessons.changed)
	s.lessons.writing = len(rows) > 0
	s.lessons.mu.Unlock()
	if len(rows) == 0 {
		return false
	}
	err := s.db.Write(ctx, func(tx *db.Tx) error {
		for _, r := range rows {
			if _, err := tx.Exec(ctx, `INSERT INTO learned_shapes (space, tool, definition, version, results, shape, learned)
				VALUES ($1, $2, $3, $4, $5, $6, $7)
				ON CONFLICT (space, tool) DO UPDATE SET definition = excluded.definition, version = excluded.version,
				results = excluded.results, shape = excluded.shape, learned = excluded.learned`,
				r.ref.Space, r.ref.Name, r.lesson.definition, r.lesson.version, r.lesson.results, string(r.shape),
				s.options.Clock.Now().UnixMicro()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.options.Log.WarnContext(ctx, "learned shapes are not written", "error", err)
	}
	return true
}

// recall reads what was learned before, the latest first.
func (s *Store) recall(ctx context.Context) error {
	s.lessons.byTool, s.lessons.changed = map[tool.Ref]*lesson{}, map[tool.Ref]bool{}
	return s.db.Read(ctx, func(tx *db.Tx) error {
		_, err := db.All(ctx, tx, func(row db.Scanner) (struct{}, error) {
			var ref tool.Ref
			var raw string
			l := &lesson{shape: &Shape{}}
			err := row.Scan(&ref.Space, &ref.Name, &l.definition, &l.version, &l.results, &raw)
			if err == nil && json.Unmarshal([]byte(raw), l.shape) == nil {
				l.calls = l.results
				s.lessons.byTool[ref] = l
			}
			return struct{}{}, err
		}, `SELECT space, tool, definition, version, results, shape FROM learned_shapes ORDER BY learned DESC LIMIT $1`, s.options.Tools)
		return err
	})
}

// Close waits until what was learned is written.
func (s *Store) Close() {
	s.lessons.wait.Wait()
}
