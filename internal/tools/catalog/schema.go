package catalog

import (
	"bytes"
	"container/list"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	maxSchemas    = 4096
	maxArgs       = 1 << 20 // longer arguments are not checked
	longestSchema = 256 << 10
	schemaAddress = "tool:input"
)

// schema checks arguments. That of an unusable definition accepts everything.
type schema struct {
	compiled *jsonschema.Schema // nil: accepts everything
	fast     *fastSchema        // recognizes most valid arguments quickly; may be nil
	costs    costs
}

// schemas caches the most recently used compiled schemas by the hash of their text.
type schemas struct {
	log *slog.Logger

	mu     sync.Mutex
	byHash map[[sha256.Size]byte]*list.Element
	recent list.List // of *cachedSchema, most recent first
}

type cachedSchema struct {
	hash   [sha256.Size]byte
	schema *schema
}

func newSchemas(log *slog.Logger) *schemas {
	return &schemas{log: log, byHash: map[[sha256.Size]byte]*list.Element{}}
}

// of is the schema of an entry, compiled once while it is cached. A schema that does
// not compile is logged and accepts everything.
func (s *schemas) of(e *entry) *schema {
	if known := e.schema.Load(); known != nil {
		return known
	}
	hash := sha256.Sum256(e.info.Input)
	found := s.lookup(hash)
	if found == nil {
		compiled, err := compile(e.info.Input)
		if err != nil {
			s.log.Warn("input schema is not usable, arguments are not checked", "tool", e.info.Ref.String(), "error", err)
		}
		made := &schema{compiled: compiled}
		if compiled != nil {
			made.fast = newFastSchema(e.info.Input)
		}
		found = s.add(hash, made)
	}
	e.schema.Store(found)
	return found
}

func (s *schemas) lookup(hash [sha256.Size]byte) *schema {
	s.mu.Lock()
	defer s.mu.Unlock()
	place := s.byHash[hash]
	if place == nil {
		return nil
	}
	s.recent.MoveToFront(place)
	return place.Value.(*cachedSchema).schema
}

// add caches a schema, unless another goroutine was faster, and drops the least
// recently used one.
func (s *schemas) add(hash [sha256.Size]byte, made *schema) *schema {
	s.mu.Lock()
	defer s.mu.Unlock()
	if place := s.byHash[hash]; place != nil {
		return place.Value.(*cachedSchema).schema
	}
	s.byHash[hash] = s.recent.PushFront(&cachedSchema{hash, made})
	if s.recent.Len() > maxSchemas {
		delete(s.byHash, s.recent.Remove(s.recent.Back()).(*cachedSchema).hash)
	}
	return made
}

// compile reads a schema of any draft. It never fetches anything.
func compile(text json.RawMessage) (compiled *jsonschema.Schema, err error) {
	defer func() { // the schema comes from an upstream, and the library may panic on it
		if p := recover(); p != nil {
			compiled, err = nil, fmt.Errorf("schema compiler: %v", p)
		}
	}()
	switch {
	case len(text) == 0:
		return nil, nil
	case len(text) > longestSchema:
		return nil, fmt.Errorf("schema has %d bytes, more than %d", len(text), longestSchema)
	case !hasSmallNumbers(text):
		return nil, errors.New("schema contains numbers that are too large")
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	for _, name := range formats {
		c.RegisterFormat(&jsonschema.Format{Name: name, Validate: func(any) error { return nil }})
	}
	if err := c.AddResource(schemaAddress, doc); err != nil {
		return nil, err
	}
	return c.Compile(schemaAddress)
}

// noLoader refuses to load schemas that others refer to. The library has its own copies
// of the drafts.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("schema refers to %s, which is not fetched", url)
}

// formats are not checked: the newer drafts define them as annotations, and the tool
// knows best what it takes for a date or an address.
var formats = []string{
	"json-pointer", "relative-json-pointer", "uuid", "duration", "period", "ipv4", "ipv6", "hostname",
	"email", "date", "time", "date-time", "uri", "iri", "uri-reference", "iri-reference", "uri-template", "semver",
}

// hasSmallNumbers tells whether the numbers in a JSON text are small enough for exact
// arithmetic: 1e999999999 as an exact fraction would fill the memory.
func hasSmallNumbers(text []byte) bool {
	digits, exponent := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '"':
			i = pastString(text, i)
			digits, exponent = 0, false
		case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			if digits++; digits > 400 || exponent && digits > 3 {
				return false
			}
		case 'e', 'E':
			if digits > 0 {
				exponent, digits = true, 0
			}
		case '+', '-', '.':
		default:
			digits, exponent = 0, false
		}
	}
	return true
}

// pastString is the end of the string that begins at a quote.
func pastString(text []byte, at int) int {
	for at++; at < len(text) && text[at] != '"'; at++ {
		if text[at] == '\\' {
			at++
		}
	}
	return at
}
