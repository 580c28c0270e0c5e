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
	alwaysLearn = 32      // results of a tool; of later ones
	learnEvery  = 32      // only each of so many
	maxLearned  = 1 << 20 // bytes of one
	writeEvery  = 64      // lessons, also when nothing new was learned
)

// Learned is what is known of a tool's results from seeing some.
type Learned struct {
	Schema  json.RawMessage // JSON Schema
	Results int             // how many it was learned from
	Version int             // another one says something else
}

// learnedShapes are what was learned, by tool.
type learnedShapes struct {
	mu      sync.Mutex
	byTool  map[tool.Ref]*learnedShape
	changed map[tool.Ref]bool // and not written yet
	writing bool
	wait    sync.WaitGroup
}

type learnedShape struct {
	definition string
	version    int
	results    int
	calls      int
	shape      *Shape
}

// Learn takes in what a tool answered.
func (s *Store) Learn(info *tool.Info, result tool.Result) {
	if len(result.Raw) > maxLearned || !s.shouldLearn(info.Ref) {
		return
	}
	view, err := result.View()
	if err != nil || view.IsError {
		return
	}
	s.learn(info, view.Value())
}

// shouldLearn counts a call and tells whether its result is to be looked at.
func (s *Store) shouldLearn(ref tool.Ref) bool {
	s.learned.mu.Lock()
	defer s.learned.mu.Unlock()
	l := s.learned.byTool[ref]
	if l == nil {
		return len(s.learned.byTool) < s.options.Tools
	}
	l.calls++
	return l.results < alwaysLearn || l.calls%learnEvery == 0
}

func (s *Store) learn(info *tool.Info, value json.RawMessage) {
	definition := fingerprint(info)
	s.learned.mu.Lock()
	defer s.learned.mu.Unlock()
	l := s.learned.byTool[info.Ref]
	switch {
	case l == nil:
		l = &learnedShape{definition: definition, shape: &Shape{}}
		s.learned.byTool[info.Ref] = l
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
	s.learned.mu.Lock()
	defer s.learned.mu.Unlock()
	l := s.learned.byTool[ref]
	if l == nil || l.results == 0 {
		return Learned{}, false
	}
	return Learned{l.shape.Schema(), l.results, l.version}, true
}

// writeLater has what was learned written down by one goroutine; mu is held.
func (s *Store) writeLater(ref tool.Ref) {
	s.learned.changed[ref] = true
	if s.learned.writing {
		return
	}
	s.learned.writing = true
	s.learned.wait.Go(func() {
		for s.writeLearned(context.Background()) {
		}
	})
}

// writeLearned writes what has changed; false when nothing had.
func (s *Store) writeLearned(ctx context.Context) bool {
	type row struct {
		ref    tool.Ref
		lesson learnedShape
		shape  []byte
	}
	s.learned.mu.Lock()
	var rows []row
	for ref := range s.learned.changed {
		l := *s.learned.byTool[ref]
		if raw, err := json.Marshal(l.shape); err == nil {
			rows = append(rows, row{ref, l, raw})
		}
	}
	clear(s.learned.changed)
	s.learned.writing = len(rows) > 0
	s.learned.mu.Unlock()
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

// load reads what was learned before, the latest first.
func (s *Store) load(ctx context.Context) error {
	s.learned.byTool, s.learned.changed = map[tool.Ref]*learnedShape{}, map[tool.Ref]bool{}
	return s.db.Read(ctx, func(tx *db.Tx) error {
		_, err := db.All(ctx, tx, func(row db.Scanner) (struct{}, error) {
			var ref tool.Ref
			var raw string
			l := &learnedShape{shape: &Shape{}}
			err := row.Scan(&ref.Space, &ref.Name, &l.definition, &l.version, &l.results, &raw)
			if err == nil && json.Unmarshal([]byte(raw), l.shape) == nil {
				l.calls = l.results
				s.learned.byTool[ref] = l
			}
			return struct{}{}, err
		}, `SELECT space, tool, definition, version, results, shape FROM learned_shapes ORDER BY learned DESC LIMIT $1`, s.options.Tools)
		return err
	})
}

// Close waits until what was learned is written.
func (s *Store) Close() {
	s.learned.wait.Wait()
}
