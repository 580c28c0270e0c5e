package results

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"sync"

	"github.com/luanette/luanette/internal/base/rawjson"
)

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
	fieldName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_$@][A-Za-z0-9_$ .:/-]{0,47}$`) })
	dataName  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-fA-F-]{8,}$|[0-9]{4,}|@.*\.|^https?:`) })
)

// data tells whether a field's name looks like data, such as an id, rather than a name.
func data(name string) bool {
	return !fieldName().MatchString(name) || dataName().MatchString(name) && !wordOnly().MatchString(name)
}

// wordOnly are names that are hexadecimal by chance, such as "facade".
var wordOnly = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z]+$`) })

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
