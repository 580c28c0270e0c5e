package typedecl

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/redact"
)

// Limits of texts from schemas, in bytes.
const (
	longestToolText  = 2000
	longestFieldText = 500
	longestFact      = 80
)

// docOf is the documentation of a value: its description and the limits that types
// cannot express.
func docOf(k keywords, f *form) string {
	doc := descriptionOf(k, f)
	facts := factsOf(k)
	if f.kind == integer && (doc != "" || len(facts) > 0) { // TypeScript has no integers
		facts = append([]string{"integer"}, facts...)
	}
	switch {
	case len(facts) == 0:
		return doc
	case doc == "":
		return strings.Join(facts, ", ")
	default:
		return doc + " (" + strings.Join(facts, ", ") + ")"
	}
}

// descriptionOf is the description of a value, or else of its parts.
func descriptionOf(k keywords, f *form) string {
	description, _ := rawjson.Text(k["description"])
	if description == "" {
		description, _ = rawjson.Text(k["title"])
	}
	doc := redact.Cut(strings.TrimSpace(description), longestFieldText)
	switch {
	case doc != "":
		return doc
	case f.kind == list && f.parts[0].doc != "":
		return "Each: " + f.parts[0].doc
	case f.kind == union:
		return partsDoc(f.parts)
	}
	return ""
}

// partsDoc is the description of the parts of a union.
func partsDoc(parts []*form) string {
	var docs []string
	for _, part := range parts {
		if part.doc != "" {
			docs = append(docs, part.doc)
		}
	}
	return redact.Cut(strings.Join(docs, " / "), longestFieldText)
}

// factsOf are the limits that a type does not show.
func factsOf(k keywords) []string {
	var facts []string
	add := func(format string, args ...any) { facts = append(facts, fmt.Sprintf(format, args...)) }
	for _, name := range []string{"format", "contentEncoding", "contentMediaType", "pattern"} {
		if value, ok := rawjson.Text(k[name]); ok {
			add("%s %s", name, redact.Cut(value, longestFact))
		}
	}
	facts = append(facts, boundsOf(k)...)
	if step := scalar(k["multipleOf"]); step != "" {
		add("multiple of %s", step)
	}
	if values, ok := rawjson.Items(k["enum"]); ok && len(values) > mostValues {
		add("one of %d values such as %s", len(values), redact.Cut(string(compact(values[0])), longestFact))
	}
	if value, ok := k["default"]; ok {
		add("default %s", redact.Cut(string(compact(value)), longestFact))
	}
	if values, ok := rawjson.Items(k["examples"]); ok && len(values) > 0 {
		add("for example %s", redact.Cut(string(compact(values[0])), longestFact))
	}
	if string(k["deprecated"]) == "true" {
		add("deprecated")
	}
	return facts
}

// boundsOf are the minimum and maximum of a value.
func boundsOf(k keywords) (facts []string) {
	for _, bound := range [][3]string{
		{"minimum", "maximum", "%s to %s"}, {"exclusiveMinimum", "exclusiveMaximum", "between %s and %s"},
		{"minLength", "maxLength", "%s to %s characters"}, {"minItems", "maxItems", "%s to %s items"},
	} {
		switch low, high := scalar(k[bound[0]]), scalar(k[bound[1]]); {
		case low != "" && high != "":
			facts = append(facts, fmt.Sprintf(bound[2], low, high))
		case low != "":
			facts = append(facts, bound[0]+" "+low)
		case high != "":
			facts = append(facts, bound[1]+" "+high)
		}
	}
	return facts
}

// scalar is a limit as it was written.
func scalar(raw json.RawMessage) string {
	if len(raw) == 0 || len(raw) > 32 || raw[0] == '{' || raw[0] == '[' || raw[0] == '"' || strings.ContainsRune("tfn", rune(raw[0])) {
		return ""
	}
	return string(raw)
}

// lines are the lines of a text, without invisible characters: those that end lines in
// some language or change the direction of text.
func lines(text string) []string {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u2028", "\n", "\u2029", "\n", "\t", "  ").Replace(text)
	text = strings.Map(func(r rune) rune {
		if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == unicode.ReplacementChar) {
			return -1
		}
		return r
	}, text)
	var kept []string
	for line := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
		line = strings.TrimRight(line, " ")
		if line != "" || len(kept) > 0 && kept[len(kept)-1] != "" {
			kept = append(kept, line)
		}
	}
	return kept
}

// oneLine is a text without its line breaks.
func oneLine(text string) string {
	return strings.Join(strings.Fields(strings.Join(lines(text), " ")), " ")
}

// quote writes a string literal of both languages, which contains nothing that ends a
// line or a comment.
func quote(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		return `""`
	}
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(raw))
}

// pascal makes a name for a type: "list-items" becomes ListItems.
func pascal(text string) string {
	var b strings.Builder
	upper := true
	for _, r := range text {
		switch {
		case r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)):
			if upper {
				r = unicode.ToUpper(r)
			}
			b.WriteRune(r)
			upper = false
		default:
			upper = true
		}
		if b.Len() > 60 {
			break
		}
	}
	return b.String()
}

// isName tells whether a name is an identifier in both languages, apart from reserved
// words.
func isName(name string) bool { return len(name) <= 200 && identifier().MatchString(name) }

var identifier = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`) })
