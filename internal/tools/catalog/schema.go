package catalog

import (
	"bytes"
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/toolset"
	"github.com/luanette/luanette/internal/tools/typedecl"
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

// CheckArguments checks the arguments against the tool's schema. Those of a relayed
// request for a tool that is not listed are left to the upstream.
func CheckArguments() tool.Step {
	return tool.Step{Name: "arguments", ChecksOnly: true, Before: checkArguments}
}

func checkArguments(ctx context.Context, i *tool.Invocation) (context.Context, error) {
	r := i.State.(*run)
	schemas, e := r.catalog.schemas, r.entry
	if i.Call.Kind != "" {
		return ctx, nil
	}
	if i.Relayed {
		e = r.catalog.callersEntry(ctx, r.catalog.view.Load().find(i.Info.Ref))
	}
	if e == nil {
		return ctx, nil
	}
	violations := schemas.of(e).check(i.Call.Args)
	if len(violations) == 0 {
		return ctx, nil
	}
	if fresh := r.renew(ctx, i, e); fresh != e {
		if e = fresh; len(schemas.of(fresh).check(i.Call.Args)) == 0 {
			return ctx, nil
		}
	}
	if args, ok := schemas.repair(e, i.Call.Args); ok {
		i.Call.Args = args
		if i.Relayed {
			i.Params = rawjson.Set(i.Params, "arguments", args)
		}
		return ctx, nil
	}
	return ctx, invalidArgs(&e.info, violations)
}

// renew returns the entry with the tool's definition as it is now: it may have changed since
// the sources were read. The call goes on with it.
func (r *run) renew(ctx context.Context, i *tool.Invocation, e *entry) *entry {
	fresh := r.catalog.callersEntry(ctx, r.catalog.refresh(ctx).find(i.Info.Ref))
	if fresh == nil || fresh == e {
		return e
	}
	if !i.Relayed {
		r.entry, i.Info = fresh, &fresh.info
	}
	return fresh
}

// repair returns arguments that match the schema, if it is clear which were meant.
func (s *schemas) repair(e *entry, args json.RawMessage) (json.RawMessage, bool) {
	schema := s.of(e)
	if better, ok := toolset.Repair(e.info.Input, args); ok {
		if args = better; len(schema.check(args)) == 0 {
			return args, true
		}
	}
	args, ok := schema.fixEmptyTables(args)
	return args, ok && len(schema.check(args)) == 0
}

// check lists what is wrong with args; nothing when they cannot be checked.
func (s *schema) check(args json.RawMessage) []Violation {
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	if first := bytes.TrimLeft(args, " \t\r\n"); len(first) == 0 || first[0] != '{' {
		return []Violation{{Expected: "object", Got: shortened(args), Problem: "arguments must be an object"}}
	}
	if !s.needsFullCheck(args) {
		return nil
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(args))
	if err != nil {
		return []Violation{{Problem: "arguments are not valid JSON: " + err.Error()}}
	}
	if depth, parts := measure(value); !s.costs.affordable(s.compiled, depth, parts) {
		return nil
	}
	var invalid *jsonschema.ValidationError
	if errors.As(s.validate(value), &invalid) {
		return violations(invalid, value, s.compiled)
	}
	return nil
}

// needsFullCheck tells whether args need the full check, and allow it.
func (s *schema) needsFullCheck(args json.RawMessage) bool {
	return s.compiled != nil && len(args) <= maxArgs && hasSmallNumbers(args) && !(json.Valid(args) && s.fast.fits(args))
}

// validate runs the library's check, which may panic on unusual schemas.
func (s *schema) validate(value any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("schema checker: %v", p)
		}
	}()
	return s.compiled.Validate(value)
}

// invalidArgs is the error with everything that is wrong with the arguments, and what
// the tool takes.
func invalidArgs(info *tool.Info, violations []Violation) error {
	lines := make([]string, len(violations))
	for i, v := range violations {
		lines[i] = v.String()
	}
	return fault.New(fault.InvalidParams, "call %s: %s", info.Ref, strings.Join(lines, "; ")).
		WithHint("%s takes %s", info.Ref, typedecl.Signature(info.Input)).
		WithDetails(map[string]any{"tool": info.Ref.String(), "violations": violations})
}

// fastSchema is a schema that uses only common keywords: types, properties, required,
// enum. It recognizes valid arguments in one pass over the text, without decoding.
// Arguments that it does not recognize get the full check, so it must be strict where
// it is unsure. A nil fastSchema recognizes nothing.
type fastSchema struct {
	kinds    jsonKind
	values   []json.RawMessage // of enum
	members  map[string]*fastSchema
	required []string
	closed   bool // no other members
	items    *fastSchema
}

// jsonKind is a set of JSON types.
type jsonKind uint8

const (
	kindString jsonKind = 1 << iota
	kindNumber
	kindInteger
	kindBoolean
	kindNull
	kindObject
	kindArray
	kindAny jsonKind = 1<<7 - 1
)

var kinds = map[string]jsonKind{
	"string": kindString, "number": kindNumber | kindInteger, "integer": kindInteger,
	"boolean": kindBoolean, "null": kindNull, "object": kindObject, "array": kindArray,
}

// annotations are keywords that constrain nothing. format is one of them here.
var annotations = []string{
	"description", "title", "default", "examples", "format", "$schema", "$comment", "deprecated", "readOnly", "writeOnly",
}

// newFastSchema reads a schema; nil when it uses other keywords.
func newFastSchema(schema json.RawMessage) *fastSchema {
	if !rawjson.IsObject(schema) {
		return nil
	}
	g := &fastSchema{kinds: kindAny}
	plain := true
	rawjson.Each(schema, func(keyword string, value json.RawMessage) bool {
		plain = g.addKeyword(keyword, value)
		return plain
	})
	if !plain {
		return nil
	}
	return g
}

// addKeyword adds one keyword; false when it is not supported.
func (g *fastSchema) addKeyword(keyword string, value json.RawMessage) bool {
	ok := true
	switch keyword {
	case "type":
		g.kinds, ok = kindsOf(value)
	case "enum":
		g.values, ok = rawjson.Items(value)
	case "required":
		ok = json.Unmarshal(value, &g.required) == nil && len(g.required) < 64
	case "properties":
		g.members = map[string]*fastSchema{}
		rawjson.Each(value, func(name string, schema json.RawMessage) bool {
			g.members[name] = newFastSchema(schema) // nil: a full check if the member is given
			return true
		})
	case "additionalProperties":
		g.closed = string(value) == "false"
		ok = g.closed || string(value) == "true" || string(value) == "{}"
	case "items":
		g.items = newFastSchema(value)
		ok = g.items != nil
	default:
		ok = slices.Contains(annotations, keyword)
	}
	return ok
}

func kindsOf(value json.RawMessage) (jsonKind, bool) {
	if name, ok := rawjson.Text(value); ok {
		return kinds[name], kinds[name] != 0
	}
	items, ok := rawjson.Items(value)
	set := jsonKind(0)
	for _, item := range items {
		name, _ := rawjson.Text(item)
		ok = ok && kinds[name] != 0
		set |= kinds[name]
	}
	return set, ok && set != 0
}

// fits tells whether a JSON text certainly matches the schema.
func (g *fastSchema) fits(value json.RawMessage) bool {
	if g == nil {
		return false
	}
	value = bytes.TrimSpace(value)
	k := kindOf(value)
	if g.kinds&k == 0 || g.values != nil && !g.inEnum(value) {
		return false
	}
	switch k {
	case kindObject:
		return g.fitsObject(value)
	case kindArray:
		return g.fitsArray(value)
	default:
		return true
	}
}

func (g *fastSchema) fitsObject(object json.RawMessage) bool {
	fits, found := true, uint64(0)
	rawjson.Each(object, func(name string, value json.RawMessage) bool {
		member, known := g.members[name]
		switch {
		case known:
			fits = member.fits(value)
		case g.closed:
			fits = false
		}
		if i := slices.Index(g.required, name); i >= 0 {
			found |= 1 << i
		}
		return fits
	})
	return fits && found == 1<<len(g.required)-1
}

func (g *fastSchema) fitsArray(array json.RawMessage) bool {
	if g.items == nil {
		return true
	}
	items, ok := rawjson.Items(array)
	return ok && !slices.ContainsFunc(items, func(item json.RawMessage) bool { return !g.items.fits(item) })
}

func (g *fastSchema) inEnum(value json.RawMessage) bool {
	return slices.ContainsFunc(g.values, func(v json.RawMessage) bool { return bytes.Equal(v, value) })
}

// kindOf is a value's type by its first character. A number that may or may not be an
// integer has none.
func kindOf(value json.RawMessage) jsonKind {
	if len(value) == 0 {
		return 0
	}
	switch value[0] {
	case '"':
		return kindString
	case '{':
		return kindObject
	case '[':
		return kindArray
	case 't', 'f':
		return kindBoolean
	case 'n':
		return kindNull
	}
	if strings.ContainsAny(string(value), ".eE") {
		return kindNumber
	}
	return kindInteger
}

// fixEmptyTables gives empty tables the type that the schema wants. In Lua they have
// none, so tags = {} arrives as an object. It is used for invalid arguments only, and
// changes nothing else in them.
func (s *schema) fixEmptyTables(args json.RawMessage) (fixed json.RawMessage, ok bool) {
	if s.compiled == nil || !rawjson.IsObject(args) {
		return nil, false
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(args))
	if err != nil {
		return nil, false
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(s.validate(value), &invalid) {
		return nil, false
	}
	fixed = args
	for _, leaf := range leaves(invalid) {
		if empty := wantedEmpty(leaf, at(value, leaf.InstanceLocation)); empty != nil {
			fixed, ok = put(fixed, leaf.InstanceLocation, empty), true
		}
	}
	return fixed, ok
}

// wantedEmpty is the empty list or object that the schema wants where the other was
// given; nil for every other finding.
func wantedEmpty(leaf *jsonschema.ValidationError, given any) json.RawMessage {
	found, ok := leaf.ErrorKind.(*kind.Type)
	if !ok || len(leaf.InstanceLocation) == 0 {
		return nil
	}
	switch given := given.(type) {
	case map[string]any:
		if len(given) == 0 && slices.Contains(found.Want, "array") {
			return json.RawMessage("[]")
		}
	case []any:
		if len(given) == 0 && slices.Contains(found.Want, "object") {
			return json.RawMessage("{}")
		}
	}
	return nil
}

// put replaces the value at a place, and leaves the rest of the text as it is.
func put(text json.RawMessage, place []string, value json.RawMessage) json.RawMessage {
	if len(place) == 0 {
		return value
	}
	if rawjson.IsObject(text) {
		inner, _ := rawjson.Get(text, place[0])
		return rawjson.Set(text, place[0], put(inner, place[1:], value))
	}
	var list []json.RawMessage
	i, err := strconv.Atoi(place[0])
	if err != nil || json.Unmarshal(text, &list) != nil || i < 0 || i >= len(list) {
		return text
	}
	list[i] = put(list[i], place[1:], value)
	joined := append([]byte{'['}, bytes.Join(asBytes(list), []byte{','})...)
	return append(joined, ']')
}

func asBytes(list []json.RawMessage) [][]byte {
	all := make([][]byte, len(list))
	for i, one := range list {
		all[i] = one
	}
	return all
}
