package results

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/store/db"
)

// Limits of learning.
const (
	alwaysLearn = 32      // the first results of a tool; then
	learnEvery  = 32      // only every 32nd
	maxLearned  = 1 << 20 // bytes of a result
	writeEvery  = 64      // results, even if the shape has not changed
)

// Learned is the shape of a tool's results as far as it was learned.
type Learned struct {
	Schema  json.RawMessage // JSON Schema
	Results int             // how many it was learned from
	Version int             // grows when the schema changes
}

// learnedShapes are the shapes by tool.
type learnedShapes struct {
	mu      sync.Mutex
	byTool  map[tool.Ref]*learnedShape
	changed map[tool.Ref]bool // not written yet
	changes map[string]int    // how often shapes of a namespace changed
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

// Learn learns from one result. It does not block.
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

// shouldLearn counts a call and tells whether to learn from its result.
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
	definition := info.Fingerprint()
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
	changed := !l.shape.Same(before)
	if changed {
		l.version++
		s.learned.changes[info.Space]++
	}
	if changed || l.results%writeEvery == 0 {
		s.writeLater(info.Ref)
	}
}

// Learned returns the shape of a tool's results; ok is false when nothing was learned.
func (s *Store) Learned(ref tool.Ref) (learned Learned, ok bool) {
	s.learned.mu.Lock()
	defer s.learned.mu.Unlock()
	l := s.learned.byTool[ref]
	if l == nil || l.results == 0 {
		return Learned{}, false
	}
	return Learned{l.shape.Schema(), l.results, l.version}, true
}

// Changes counts how often a learned shape of a namespace has changed.
func (s *Store) Changes(space string) int {
	s.learned.mu.Lock()
	defer s.learned.mu.Unlock()
	return s.learned.changes[space]
}

// Fields returns the names of fields in the results of a tool.
func (s *Store) Fields(ref tool.Ref) []string {
	learned, ok := s.Learned(ref)
	if !ok {
		return nil
	}
	return FieldNames(learned.Schema)
}

// writeLater has one goroutine write the shapes; mu is held.
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

// writeLearned writes the changed shapes; false when there are none.
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
		s.options.Log.WarnContext(ctx, "cannot write learned shapes", "error", err)
	}
	return true
}

// load reads the stored shapes, the latest first.
func (s *Store) load(ctx context.Context) error {
	s.learned.byTool, s.learned.changed, s.learned.changes = map[tool.Ref]*learnedShape{}, map[tool.Ref]bool{}, map[string]int{}
	return s.db.Read(ctx, func(tx *db.Tx) error {
		_, err := db.All(ctx, tx, func(row db.Scanner) (struct{}, error) {
			var ref tool.Ref
			var raw string
			l := &learnedShape{shape: &Shape{}}
			err := row.Scan(&ref.Space, &ref.Name, &l.definition, &l.version, &l.results, &raw)
			if err == nil && json.Unmarshal([]byte(raw), l.shape) == nil {
				l.calls = l.results
				s.learned.byTool[ref] = l
				s.learned.changes[ref.Space] += l.version
			}
			return struct{}{}, err
		}, `SELECT space, tool, definition, version, results, shape FROM learned_shapes ORDER BY learned DESC LIMIT $1`, s.options.Tools)
		return err
	})
}

// Close waits until the shapes are written.
func (s *Store) Close() {
	s.learned.wait.Wait()
}
