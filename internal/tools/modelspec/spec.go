// Package modelspec describes tools that ask a model behind HTTP: their arguments, the
// request that is made of them, and what kind of answer is expected. A description is a
// few lines of configuration.
package modelspec

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/base/rawjson"
)

// What a model answers with.
const (
	MIDI     = "midi"     // MIDI files: variations[].midi_base64, or midi_base64
	Audio    = "audio"    // a sound: audio_base64, and format if it is not WAV
	Analysis = "analysis" // an object
)

// Spec is one tool and the service that it asks.
type Spec struct {
	URL         string              `toml:"url" help:"address of the service; without a path, requests go to /predict"`
	Title       string              `toml:"title" help:"title of the tool; its name when empty"`
	Description string              `toml:"description" help:"what the tool does, for the model that calls it"`
	Result      string              `toml:"result" help:"what the service answers with: midi, audio or analysis"`
	Expects     []string            `toml:"expects" help:"fields that the answer must have"`
	Timeout     string              `toml:"timeout" help:"how long one request may take (5m)"`
	Send        map[string]any      `toml:"send" help:"fields that every request has, such as task = \"generate\""`
	Arguments   map[string]Argument `toml:"arguments" help:"the tool's arguments"`
}

// Argument is an argument of the tool and the field of the request that it becomes.
type Argument struct {
	Type        string   `toml:"type" help:"string, number, integer, boolean, list (of strings), midi or audio; midi and audio are the hash or artifact id of a content, which is sent in base64"`
	Field       string   `toml:"field" help:"name of the field in the request; the argument's name when empty"`
	Description string   `toml:"description" help:"what it means, for the model that calls the tool"`
	Required    bool     `toml:"required" help:"whether it must be given"`
	Default     any      `toml:"default" help:"what is sent when it is not given; nothing is sent without a default"`
	Min         *float64 `toml:"min" help:"least value of a number, or length of a string"`
	Max         *float64 `toml:"max" help:"greatest value of a number, or length of a string or list"`
	Values      []string `toml:"values" help:"the only allowed values of a string"`
}

// Types of arguments whose value names a content.
const (
	midiContent  = "midi"
	audioContent = "audio"
)

// schemaTypes are the JSON types of the types of arguments.
var schemaTypes = map[string]string{
	"string": "string", "number": "number", "integer": "integer", "boolean": "boolean", "list": "array", midiContent: "string", audioContent: "string",
}

// Limits.
const (
	defaultTimeout = 5 * time.Minute
	maxTimeout     = time.Hour
	maxArguments   = 64
	maxText        = 64 << 10 // length of a string without max
	maxDescription = 600      // as for our own tools
)

var nameForm = lazyregexp.New(`^[a-z][a-z0-9_]{0,47}$`)

// Check returns what is wrong with the description of a tool with that name.
func (s Spec) Check(name string) error {
	bad := func(format string, args ...any) *fault.Error {
		return fault.New(fault.Config, "music.models."+name+": "+format, args...)
	}
	if !nameForm().MatchString(name) {
		return fault.New(fault.Config, "music.models: %q cannot be the name of a tool", name).WithHint("use lower-case letters, digits and _, at most 48, such as riff_generate")
	}
	u, err := url.Parse(s.URL)
	d, wrong := s.timeout()
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return bad("%q is no http address", s.URL).WithHint("set url to one such as http://127.0.0.1:2020")
	case s.Description == "" || len(s.Description) > maxDescription:
		return bad("the description has %d bytes", len(s.Description)).WithHint("say what the tool does in 1 to %d bytes: models choose tools by it", maxDescription)
	case !slices.Contains([]string{MIDI, Audio, Analysis}, s.Result):
		return bad("unknown result %q", s.Result).WithHint("use midi, audio or analysis")
	case wrong != nil || d <= 0 || d > maxTimeout:
		return bad("timeout %q is not a duration up to %s", s.Timeout, maxTimeout).WithHint("use one such as 30s or 5m")
	}
	return s.checkArguments(name)
}

func (s Spec) checkArguments(name string) error {
	if n := len(s.Arguments); n > maxArguments {
		return fault.New(fault.Config, "music.models.%s: it has %d arguments", name, n).WithHint("at most %d are allowed", maxArguments)
	}
	for _, key := range slices.Sorted(maps.Keys(s.Arguments)) {
		if err := s.Arguments[key].check(key); err != nil {
			return fault.Wrap(fault.Config, err, "music.models.%s.arguments.%s", name, key).WithHint("%s", fault.HintOf(err))
		}
	}
	return nil
}

func (s Spec) timeout() (time.Duration, error) {
	if s.Timeout == "" {
		return defaultTimeout, nil
	}
	return time.ParseDuration(s.Timeout)
}

// TimeoutOf is how long one request may take.
func (s Spec) TimeoutOf() time.Duration {
	d, err := s.timeout()
	if err != nil {
		return defaultTimeout
	}
	return d
}

// Address is the URL that requests are sent to.
func (s Spec) Address() string {
	if u, err := url.Parse(s.URL); err == nil && strings.Trim(u.Path, "/") == "" {
		u.Path = "/predict"
		return u.String()
	}
	return s.URL
}

// reserved are the arguments that every tool with artifacts has.
var reserved = []string{"tags", "creator", "parent_id", "variation_set_id", "variation_index"}

func (a Argument) check(name string) error {
	switch {
	case !nameForm().MatchString(name):
		return fault.New(fault.Config, "%q cannot be the name of an argument", name).WithHint("use lower-case letters, digits and _, at most 48")
	case slices.Contains(reserved, name):
		return fault.New(fault.Config, "every tool that makes artifacts has this argument").WithHint("choose another name, and set field to the name in the request")
	case schemaTypes[a.Type] == "":
		return fault.New(fault.Config, "unknown type %q", a.Type).WithHint("use string, number, integer, boolean, list, midi or audio")
	case a.Min != nil && a.Max != nil && *a.Min > *a.Max:
		return fault.New(fault.Config, "min is greater than max").WithHint("exchange them")
	case len(a.Values) > 0 && a.Type != "string":
		return fault.New(fault.Config, "a %s cannot have values", a.Type).WithHint("only strings can")
	case a.Default != nil && a.Content():
		return fault.New(fault.Config, "a content has no default").WithHint("make it required, or leave the default away")
	case a.Default == nil:
		return nil
	}
	if _, err := a.value(name, a.Default); err != nil {
		return fault.Wrap(fault.Config, err, "the default").WithHint("give a value that callers could give")
	}
	return nil
}

// Content tells whether the argument's value is the name of a content.
func (a Argument) Content() bool { return a.Type == midiContent || a.Type == audioContent }

// Schema is the JSON schema of the tool's arguments, and of those in more, in the form
// that the strictest clients accept. more is a schema, too; nil means none.
func (s Spec) Schema(more json.RawMessage) (json.RawMessage, error) {
	schema := struct {
		Type       string         `json:"type"`
		Properties map[string]any `json:"properties"`
		Required   []string       `json:"required"`
		Additional bool           `json:"additionalProperties"`
	}{Type: "object"}
	if more != nil {
		if err := json.Unmarshal(more, &schema); err != nil {
			return nil, err
		}
	}
	schema.Additional = false
	if schema.Properties == nil {
		schema.Properties = map[string]any{}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Arguments)) {
		a := s.Arguments[name]
		schema.Properties[name] = a.schema(name)
		if a.Required {
			schema.Required = append(schema.Required, name)
		}
	}
	if schema.Required == nil {
		schema.Required = []string{}
	}
	return json.Marshal(schema)
}

func (a Argument) schema(name string) map[string]any {
	about := cmp.Or(a.Description, strings.ReplaceAll(name, "_", " "))
	switch {
	case a.Type == midiContent:
		about += "; a MIDI file: its hash, or its artifact's id"
	case a.Type == audioContent:
		about += "; a WAV file: its hash, or its artifact's id"
	case a.Default != nil:
		about += fmt.Sprintf("; default %v", a.Default)
	}
	schema := map[string]any{"type": schemaTypes[a.Type], "description": about}
	if a.Type == "list" {
		schema["items"] = map[string]any{"type": "string"}
	}
	least, most := "minimum", "maximum"
	switch schemaTypes[a.Type] {
	case "string":
		least, most = "minLength", "maxLength"
	case "array":
		least, most = "minItems", "maxItems"
	}
	if a.Min != nil {
		schema[least] = *a.Min
	}
	if a.Max != nil {
		schema[most] = *a.Max
	}
	if len(a.Values) > 0 {
		schema["enum"] = a.Values
	}
	return schema
}

// Decode reads the arguments of a call and checks them. Arguments that the tool does not
// have are ignored.
func (s Spec) Decode(raw json.RawMessage) (map[string]any, error) {
	given := map[string]any{}
	if len(bytes.TrimSpace(raw)) > 0 {
		if err := json.Unmarshal(raw, &given); err != nil {
			return nil, fault.Wrap(fault.InvalidParams, rawjson.InWords(err), "read the arguments")
		}
	}
	args := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(s.Arguments)) {
		a := s.Arguments[name]
		value, found := given[name]
		if !found || value == nil || a.Content() && value == "" {
			if a.Required {
				return nil, fault.New(fault.InvalidParams, "the argument %s is missing", name).WithHint("%s", a.schema(name)["description"])
			}
			continue
		}
		value, err := a.value(name, value)
		if err != nil {
			return nil, err
		}
		args[name] = value
	}
	return args, nil
}

// value checks a value and returns it as it is sent.
func (a Argument) value(name string, v any) (any, error) {
	wrong := func() error {
		return fault.New(fault.InvalidParams, "%s: %v is no %s", name, v, a.Type).WithHint("give a %s", a.Type)
	}
	switch schemaTypes[a.Type] {
	case "boolean":
		if b, ok := v.(bool); ok {
			return b, nil
		}
		return nil, wrong()
	case "array":
		return a.list(name, v)
	case "string":
		text, ok := v.(string)
		if !ok {
			return nil, wrong()
		}
		return text, a.checkText(name, text)
	}
	n, ok := number(v)
	if !ok || a.Type == "integer" && n != math.Trunc(n) {
		return nil, wrong()
	}
	return n, a.checkNumber(name, n)
}

func (a Argument) checkNumber(name string, n float64) error {
	if a.Min != nil && n < *a.Min || a.Max != nil && n > *a.Max {
		return fault.New(fault.InvalidParams, "%s: %g is out of range", name, n).WithHint("give a number %s", a.span())
	}
	return nil
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case float64:
		return n, true
	case int64: // of a TOML file
		return float64(n), true
	}
	return 0, false
}

func (a Argument) checkText(name, text string) error {
	length := float64(utf8.RuneCountInString(text))
	switch {
	case a.Min != nil && length < *a.Min, a.Max != nil && length > *a.Max, a.Max == nil && len(text) > maxText:
		return fault.New(fault.InvalidParams, "%s has %g characters", name, length).WithHint("give %s", a.span())
	case len(a.Values) > 0 && !slices.Contains(a.Values, text):
		return fault.New(fault.InvalidParams, "%s: unknown value %.40q", name, text).WithHint("use %s", strings.Join(a.Values, ", "))
	}
	return nil
}

// span says how large a value may be.
func (a Argument) span() string {
	switch {
	case a.Min == nil && a.Max == nil:
		return fmt.Sprintf("at most %d", maxText)
	case a.Min == nil:
		return fmt.Sprintf("up to %g", *a.Max)
	case a.Max == nil:
		return fmt.Sprintf("from %g", *a.Min)
	}
	return fmt.Sprintf("from %g to %g", *a.Min, *a.Max)
}

// maxItems is the length of a list without max.
const maxItems = 256

func (a Argument) list(name string, v any) (any, error) {
	items, ok := v.([]any)
	if !ok {
		return nil, fault.New(fault.InvalidParams, "%s is no list", name).WithHint("give a list of strings")
	}
	most := float64(maxItems)
	if a.Max != nil {
		most = *a.Max
	}
	if n := float64(len(items)); n > most || a.Min != nil && n < *a.Min {
		return nil, fault.New(fault.InvalidParams, "%s has %g items", name, n).WithHint("give at most %g", most)
	}
	for _, item := range items {
		if text, ok := item.(string); !ok || len(text) > maxText {
			return nil, fault.New(fault.InvalidParams, "%s: %.40v is no short string", name, item).WithHint("give a list of strings")
		}
	}
	return items, nil
}

// Request is the body of the request for decoded arguments. content returns a content in
// base64, as the argument's type requires.
func (s Spec) Request(args map[string]any, content func(kind, name string) (string, error)) (map[string]any, error) {
	request := maps.Clone(s.Send)
	if request == nil {
		request = map[string]any{}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Arguments)) {
		a := s.Arguments[name]
		value, given := args[name]
		switch {
		case !given && a.Default == nil:
			continue
		case !given:
			value = a.Default
		case a.Content():
			text, err := content(a.Type, fmt.Sprint(value))
			if err != nil {
				return nil, err
			}
			value = text
		}
		request[cmp.Or(a.Field, name)] = value
	}
	return request, nil
}

// Contents returns the names of the contents among decoded arguments, in the order of the
// arguments' names, the required ones first.
func (s Spec) Contents(args map[string]any) (names []string) {
	for _, required := range []bool{true, false} {
		for _, name := range slices.Sorted(maps.Keys(s.Arguments)) {
			if text, ok := args[name].(string); ok && s.Arguments[name].Content() && s.Arguments[name].Required == required {
				names = append(names, text)
			}
		}
	}
	return names
}
