package results

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/tools/definition"
	"github.com/luanette/luanette/internal/tools/typedecl"
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
	return definition.FieldNames(learned.Schema)
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

var kindNames = []struct {
	kind Kinds
	name string
}{
	{Object, "object"}, {Array, "array"}, {Text, "string"}, {Integer, "integer"}, {Number, "number"}, {Bool, "boolean"}, {Null, "null"},
}

// names are the type names of JSON Schema.
func (k Kinds) names() []string {
	if k&Number != 0 {
		k &^= Integer
	}
	var names []string
	for _, n := range kindNames {
		if k&n.kind != 0 {
			names = append(names, n.name)
		}
	}
	return names
}

// Schema is the shape as a JSON Schema. Fields that every object had are
// required.
func (s *Shape) Schema() json.RawMessage {
	schema := json.RawMessage("{}")
	set := func(key string, value any) {
		if raw, err := json.Marshal(value); err == nil {
			schema = rawjson.Set(schema, key, raw)
		}
	}
	switch names := s.Kinds.names(); len(names) {
	case 0:
	case 1:
		set("type", names[0])
	default:
		set("type", names)
	}
	if len(s.Fields) > 0 {
		properties := json.RawMessage("{}")
		var required []string
		for _, f := range s.Fields {
			properties = rawjson.Set(properties, f.Name, f.Shape.Schema())
			if f.Count >= s.Count {
				required = append(required, f.Name)
			}
		}
		schema = rawjson.Set(schema, "properties", properties)
		if len(required) > 0 {
			set("required", required)
		}
	}
	if s.Values != nil {
		schema = rawjson.Set(schema, "additionalProperties", s.Values.Schema())
	}
	if s.Items != nil {
		schema = rawjson.Set(schema, "items", s.Items.Schema())
	}
	return schema
}

// String is the shape on one line, such as {name: string, size?: integer}[].
func (s *Shape) String() string { return typedecl.Line(s.Schema()) }

// Limits of one shape.
const (
	deepest    = 8
	mostFields = 48  // of an object; one with more is treated as a map
	mostParts  = 400 // in all
	mostItems  = 50  // of an array that are read
)

// Kinds is a set of JSON types.
type Kinds uint8

// The types.
const (
	Null Kinds = 1 << iota
	Bool
	Integer
	Number
	Text
	Object
	Array
)

// Shape describes the values seen in one place.
type Shape struct {
	Kinds  Kinds   `json:"k"`
	Count  int     `json:"n,omitempty"` // objects seen
	Fields []Field `json:"f,omitempty"` // in the order of appearance
	Values *Shape  `json:"v,omitempty"` // of an object that is a map: its values
	Items  *Shape  `json:"i,omitempty"` // of an array
}

// Field is a field that objects had.
type Field struct {
	Name  string `json:"name"`
	Count int    `json:"n"` // in how many of the objects
	Shape *Shape `json:"s"`
}

// ShapeOf is the shape of one value.
func ShapeOf(value json.RawMessage) *Shape {
	s := &Shape{}
	s.Learn(value)
	return s
}

// Learn adds a value.
func (s *Shape) Learn(value json.RawMessage) {
	left := mostParts - s.size()
	s.learn(value, 0, &left)
}

func (s *Shape) size() int {
	n := 1
	for _, f := range s.Fields {
		n += f.Shape.size()
	}
	for _, inner := range []*Shape{s.Values, s.Items} {
		if inner != nil {
			n += inner.size()
		}
	}
	return n
}

func (s *Shape) learn(value json.RawMessage, depth int, left *int) {
	value = bytes.TrimSpace(value)
	if len(value) == 0 {
		return
	}
	switch value[0] {
	case 'n':
		s.Kinds |= Null
	case 't', 'f':
		s.Kinds |= Bool
	case '"':
		s.Kinds |= Text
	case '{':
		s.Kinds |= Object
		s.learnObject(value, depth, left)
	case '[':
		s.Kinds |= Array
		s.learnArray(value, depth, left)
	default:
		if bytes.ContainsAny(value, ".eE") {
			s.Kinds |= Number
		} else {
			s.Kinds |= Integer
		}
	}
}

func (s *Shape) learnArray(array json.RawMessage, depth int, left *int) {
	if depth >= deepest {
		return
	}
	items, _ := rawjson.Items(array)
	if len(items) == 0 {
		return
	}
	if s.Items == nil {
		if *left <= 0 {
			return
		}
		s.Items = &Shape{}
		*left--
	}
	for _, item := range items[:min(len(items), mostItems)] {
		s.Items.learn(item, depth+1, left)
	}
}

func (s *Shape) learnObject(value json.RawMessage, depth int, left *int) {
	s.Count++
	if depth >= deepest {
		return
	}
	seen := map[string]bool{}
	looked := 0
	rawjson.Each(value, func(name string, inner json.RawMessage) bool {
		if seen[name] {
			return true
		}
		seen[name] = true
		looked++
		if field := s.field(name, left); field != nil {
			field.learn(inner, depth+1, left)
		}
		return looked < 4*mostFields
	})
}

// field is the shape of a field's values; nil when there are too many fields.
func (s *Shape) field(name string, left *int) *Shape {
	if s.Values == nil {
		if i := slices.IndexFunc(s.Fields, func(f Field) bool { return f.Name == name }); i >= 0 {
			s.Fields[i].Count++
			return s.Fields[i].Shape
		}
		if *left <= 0 {
			return nil
		}
		if len(s.Fields) < mostFields && !data(name) {
			*left--
			s.Fields = append(s.Fields, Field{name, 1, &Shape{}})
			return s.Fields[len(s.Fields)-1].Shape
		}
		s.becomeMap(left)
	}
	return s.Values
}

// becomeMap drops the names of fields, because they are data.
func (s *Shape) becomeMap(left *int) {
	s.Values = &Shape{}
	for _, f := range s.Fields {
		*left += f.Shape.size()
		s.Values.merge(f.Shape, left)
	}
	s.Fields = nil
}

// merge adds another shape.
func (s *Shape) merge(other *Shape, left *int) {
	s.Kinds |= other.Kinds
	s.Count += other.Count
	for _, f := range other.Fields {
		if field := s.field(f.Name, left); field != nil {
			if s.Values == nil {
				s.Fields[slices.IndexFunc(s.Fields, func(mine Field) bool { return mine.Name == f.Name })].Count += f.Count - 1
			}
			field.merge(f.Shape, left)
		}
	}
	if other.Values != nil {
		if s.Values == nil {
			s.becomeMap(left)
		}
		s.Values.merge(other.Values, left)
	}
	if other.Items != nil {
		if s.Items == nil {
			s.Items = &Shape{}
		}
		s.Items.merge(other.Items, left)
	}
}

var (
	fieldName = lazyregexp.New(`^[A-Za-z_$@][A-Za-z0-9_$ .:/-]{0,47}$`)
	dataName  = lazyregexp.New(`^[0-9a-fA-F-]{8,}$|[0-9]{4,}|@.*\.|^https?:`)
)

// data tells whether a field's name looks like data, such as an id, rather than a name.
func data(name string) bool {
	return !fieldName().MatchString(name) || dataName().MatchString(name) && !wordOnly().MatchString(name)
}

// wordOnly are names that are hexadecimal by chance, such as "facade".
var wordOnly = lazyregexp.New(`^[a-z]+$`)

// Same tells whether two shapes are equal but for their counts.
func (s *Shape) Same(other *Shape) bool {
	if s == nil || other == nil {
		return s == other
	}
	if s.Kinds != other.Kinds || len(s.Fields) != len(other.Fields) {
		return false
	}
	for i, f := range s.Fields {
		o := other.Fields[i]
		if f.Name != o.Name || (f.Count == s.Count) != (o.Count == other.Count) || !f.Shape.Same(o.Shape) {
			return false
		}
	}
	return s.Values.Same(other.Values) && s.Items.Same(other.Items)
}

// Clone is a deep copy.
func (s *Shape) Clone() *Shape {
	if s == nil {
		return nil
	}
	c := *s
	c.Fields = slices.Clone(s.Fields)
	for i := range c.Fields {
		c.Fields[i].Shape = c.Fields[i].Shape.Clone()
	}
	c.Values, c.Items = s.Values.Clone(), s.Items.Clone()
	return &c
}
