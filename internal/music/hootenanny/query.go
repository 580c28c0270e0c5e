package hootenanny

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/tools/toolset"
)

// condition is a parsed query, which holds for an artifact or not.
type condition interface {
	holds(a *Artifact, f *family) (bool, error)
}

type (
	both   struct{ left, right condition }
	either struct{ left, right condition }
	negate struct{ of condition }
	// term is one comparison or, with has, a test whether a field is set.
	term struct {
		field, op, text string
		number          float64
	}
)

func (c both) holds(a *Artifact, f *family) (bool, error) {
	if ok, err := c.left.holds(a, f); err != nil || !ok {
		return false, err
	}
	return c.right.holds(a, f)
}

func (c either) holds(a *Artifact, f *family) (bool, error) {
	if ok, err := c.left.holds(a, f); err != nil || ok {
		return ok, err
	}
	return c.right.holds(a, f)
}

func (c negate) holds(a *Artifact, f *family) (bool, error) {
	ok, err := c.of.holds(a, f)
	return !ok, err
}

// required returns the terms that must hold for a condition to hold.
func required(c condition) []term {
	switch c := c.(type) {
	case term:
		return []term{c}
	case both:
		return append(required(c.left), required(c.right)...)
	default:
		return nil
	}
}

// fields returns the values of each field of an artifact: texts or a number.
var fields = map[string]struct {
	texts  func(a *Artifact) []string
	number func(a *Artifact) float64
	family bool
}{
	"id":          {texts: func(a *Artifact) []string { return []string{a.ID()} }},
	"hash":        {texts: func(a *Artifact) []string { return []string{a.Hash.String()} }},
	"mime":        {texts: func(a *Artifact) []string { return []string{a.MIME} }},
	"name":        {texts: func(a *Artifact) []string { return some(a.Name) }},
	"description": {texts: func(a *Artifact) []string { return some(a.Description) }},
	"creator":     {texts: creators},
	"tag":         {texts: func(a *Artifact) []string { return a.Tags }},
	"annotation": {texts: func(a *Artifact) []string {
		return annotations(a, func(n artifact.Annotation) string { return n.Message })
	}},
	"vibe": {texts: func(a *Artifact) []string {
		return annotations(a, func(n artifact.Annotation) string { return n.Vibe })
	}},
	"source": {texts: func(a *Artifact) []string {
		return annotations(a, func(n artifact.Annotation) string { return n.Source })
	}},
	"set":        {texts: func(a *Artifact) []string { return some(a.set) }},
	"index":      {number: func(a *Artifact) float64 { return float64(a.index) }},
	"size":       {number: func(a *Artifact) float64 { return float64(a.Size) }},
	"created":    {number: func(a *Artifact) float64 { return float64(a.CreatedAt.UnixMilli()) }},
	"parent":     {texts: parents},
	"ancestor":   {family: true},
	"descendant": {family: true},
}

func creators(a *Artifact) []string {
	if a.Creator == "" {
		return []string{unknown}
	}
	return []string{a.Creator}
}

func parents(a *Artifact) []string {
	if a.Parent.IsZero() {
		return nil
	}
	return []string{artifact.ID(a.Parent), a.Parent.String()}
}

func annotations(a *Artifact, part func(artifact.Annotation) string) (texts []string) {
	for _, n := range a.Annotations {
		texts = append(texts, some(part(n))...)
	}
	return texts
}

func (t term) holds(a *Artifact, f *family) (bool, error) {
	field := fields[t.field]
	switch {
	case field.family:
		set, err := f.of(t.field, t.text)
		return set[a.Hash] == (t.op == "="), err
	case field.number != nil:
		return t.compares(field.number(a)), nil
	case t.op == "has":
		return len(field.texts(a)) > 0, nil
	}
	for _, text := range field.texts(a) {
		if t.op == "~" && strings.Contains(strings.ToLower(text), strings.ToLower(t.text)) || t.op != "~" && text == t.text {
			return t.op != "!=", nil
		}
	}
	return t.op == "!=", nil
}

func (t term) compares(n float64) bool {
	switch t.op {
	case "=":
		return n == t.number
	case "!=":
		return n != t.number
	case "<":
		return n < t.number
	case "<=":
		return n <= t.number
	case ">":
		return n > t.number
	case ">=":
		return n >= t.number
	default: // has
		return n != 0
	}
}

// parser parses a query from its tokens.
type parser struct {
	words     []word
	next      int
	depth     int
	variables map[string]json.RawMessage
}

// word is a token of a query: a name, a value or an operator.
type word struct {
	text   string
	quoted bool
	at     int // position in the query, in bytes
}

const deepest = 100

// parseQuery parses a query.
func parseQuery(text string, variables toolset.Object) (condition, error) {
	words, err := split(text)
	if err != nil {
		return nil, err
	}
	p := &parser{words: words}
	if len(variables) > 0 {
		if err := json.Unmarshal(variables, &p.variables); err != nil {
			return nil, invalid("read variables: %v", err)
		}
	}
	c, err := p.or()
	if err != nil {
		return nil, err
	}
	if w, more := p.peek(); more {
		return nil, p.wrong(w, "unexpected text after the end of the query")
	}
	return c, nil
}

// split splits a query into tokens.
func split(text string) (words []word, err error) {
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case unicode.IsSpace(rune(c)):
			i++
		case c == '"' || c == '\'':
			end := strings.IndexByte(text[i+1:], c)
			if end < 0 {
				return nil, invalid("query, position %d: %c is not closed", i+1, c)
			}
			words = append(words, word{text[i+1 : i+1+end], true, i})
			i += end + 2
		case strings.IndexByte("()=~", c) >= 0:
			words = append(words, word{text[i : i+1], false, i})
			i++
		case strings.IndexByte("<>!", c) >= 0:
			n := 1
			if i+1 < len(text) && text[i+1] == '=' {
				n = 2
			}
			words = append(words, word{text[i : i+n], false, i})
			i += n
		default:
			n := strings.IndexFunc(text[i:], func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("()=~<>!\"'", r) })
			if n < 0 {
				n = len(text) - i
			}
			words = append(words, word{text[i : i+n], false, i})
			i += n
		}
	}
	return words, nil
}

func (p *parser) peek() (word, bool) {
	if p.next < len(p.words) {
		return p.words[p.next], true
	}
	return word{}, false
}

// is reports whether the next token is that operator or keyword, and skips it.
func (p *parser) is(text string) bool {
	w, ok := p.peek()
	if ok && !w.quoted && strings.EqualFold(w.text, text) {
		p.next++
		return true
	}
	return false
}

func (p *parser) or() (condition, error) {
	left, err := p.and()
	for err == nil && p.is("or") {
		var right condition
		right, err = p.and()
		left = either{left, right}
	}
	return left, err
}

func (p *parser) and() (condition, error) {
	left, err := p.one()
	for err == nil && p.is("and") {
		var right condition
		right, err = p.one()
		left = both{left, right}
	}
	return left, err
}

func (p *parser) one() (condition, error) {
	if p.depth++; p.depth > deepest {
		return nil, invalid("the query is nested deeper than %d", deepest)
	}
	defer func() { p.depth-- }()
	switch {
	case p.is("not"):
		c, err := p.one()
		return negate{c}, err
	case p.is("("):
		c, err := p.or()
		if err == nil && !p.is(")") {
			w, _ := p.peek()
			err = p.wrong(w, "a ( that is not closed")
		}
		return c, err
	case p.is("has"):
		return p.has()
	default:
		return p.term()
	}
}

// has reads has(field).
func (p *parser) has() (condition, error) {
	w, _ := p.peek()
	if !p.is("(") {
		return nil, p.wrong(w, "has is followed by a field in ( )")
	}
	w, ok := p.peek()
	if !ok {
		return nil, p.wrong(w, "has is followed by a field in ( )")
	}
	p.next++
	t := term{field: strings.ToLower(w.text), op: "has"}
	if field, known := fields[t.field]; !known || field.family {
		return nil, p.unknown(w)
	}
	if !p.is(")") {
		return nil, p.wrong(w, "has is followed by a field in ( )")
	}
	return t, nil
}

// term reads a comparison.
func (p *parser) term() (condition, error) {
	w, ok := p.peek()
	if !ok {
		return nil, p.wrong(w, "the query ends where a field is expected")
	}
	p.next++
	t := term{field: strings.ToLower(w.text)}
	field, known := fields[t.field]
	if !known || w.quoted {
		return nil, p.unknown(w)
	}
	var err error
	if t.op, err = p.comparison(t.field); err != nil {
		return nil, err
	}
	if t.text, err = p.value(); err != nil {
		return nil, err
	}
	if field.number != nil {
		t.number, err = quantity(t.field, t.text)
	}
	return t, err
}

// comparison reads how a field is compared.
func (p *parser) comparison(name string) (op string, err error) {
	sign, _ := p.peek()
	for _, one := range []string{"=", "!=", "~", "<", "<=", ">", ">="} {
		if p.is(one) {
			op = one
		}
	}
	field := fields[name]
	ordered := strings.ContainsAny(op, "<>")
	switch {
	case op == "":
		return "", p.wrong(sign, "after a field comes one of = != ~ < <= > >=")
	case field.number == nil && ordered, field.number != nil && op == "~", field.family && op == "~":
		return "", p.wrong(sign, fmt.Sprintf("%s cannot be compared with %s", name, op))
	}
	return op, nil
}

// value reads the value that a field is compared with.
func (p *parser) value() (string, error) {
	w, ok := p.peek()
	if !ok || !w.quoted && strings.ContainsAny(w.text, "()=~<>!") {
		return "", p.wrong(w, "a value is expected")
	}
	p.next++
	name, variable := strings.CutPrefix(w.text, "$")
	if w.quoted || !variable {
		return w.text, nil
	}
	raw, given := p.variables[name]
	if !given {
		return "", p.wrong(w, "there is no variable "+name)
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	return string(raw), nil
}

// quantity parses a number, or a time: a date, or a duration before now.
func quantity(field, text string) (float64, error) {
	if field != "created" {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return 0, invalid("query: %s must be compared with a number, not with %q", field, text)
		}
		return n, nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02"} {
		if at, err := time.Parse(layout, text); err == nil {
			return float64(at.UnixMilli()), nil
		}
	}
	return 0, invalid("query: created must be compared with a date, not with %q", text).WithHint("write 2026-01-31 or 2026-01-31T12:00:00Z")
}

func (p *parser) wrong(w word, what string) error {
	place := "at its end"
	if w.text != "" || w.quoted {
		place = fmt.Sprintf("at %q, position %d", w.text, w.at+1)
	}
	return invalid("query, %s: %s", place, what).WithHint(`example: tag = type:midi and (vibe ~ calm or annotation ~ "slow") and not has(parent)`)
}

func (p *parser) unknown(w word) error {
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	err := invalid("query, position %d: unknown field %q", w.at+1, w.text)
	if close := suggest.Names(w.text, names, 3); len(close) > 0 {
		return err.WithHint("did you mean %s?", strings.Join(close, " or "))
	}
	return err.WithHint("fields: %s", strings.Join(slices.Sorted(slices.Values(names)), ", "))
}
