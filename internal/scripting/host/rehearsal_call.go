package host

import (
	"context"
	"encoding/json"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/core/tool"
)

// Whoever approves a call that writes a file should see what changes in it, as with the
// files that scripts write themselves. What the file has now is known only to the server
// of the tool, so it is read with a read-only tool of that server: through the same checks
// as every call of the script, and never from anywhere else.

// fileCall is a call of a tool that changes a file.
type fileCall struct {
	tool  tool.Ref
	key   string // the argument that names the file
	path  string
	write *string    // what the file becomes
	edits []fileEdit // what is replaced in it
}

type fileEdit struct{ old, new string }

var (
	writesFile = lazyregexp.New(`(?i)(write|save|edit|update|replace|create|put).*(file|text|document|content|note)|^(write|edit|save|str_replace)`)
	readsFile  = lazyregexp.New(`(?i)^(read|get|view|cat|open)(_?(text|whole))?(_?(file|document|note|content))?s?(_?(text|contents?))?$`)

	pathKeys    = []string{"path", "file_path", "filePath", "filepath", "filename", "file", "uri"}
	contentKeys = []string{"content", "contents", "text", "file_text", "fileText", "data"}
	oldKeys     = []string{"oldText", "old_text", "old_string", "old_str", "oldString"}
	newKeys     = []string{"newText", "new_text", "new_string", "new_str", "newString"}
)

// asFileCall returns the call if its tool and its arguments look like changing a file.
func asFileCall(e Effect) (c fileCall, ok bool) {
	c.tool = calledTool(e)
	raw, _ := argument(e, 2).(json.RawMessage)
	if _, relayed, is := RelayedCall(Args{Values: e.Args}); is {
		raw = relayed
	}
	var args map[string]any
	if e.Name != callEffect || c.tool.Space == "" || !writesFile().MatchString(c.tool.Name) || json.Unmarshal(raw, &args) != nil {
		return c, false
	}
	if c.key, c.path, _ = textAt(args, pathKeys); c.path == "" {
		return c, false
	}
	if _, text, found := textAt(args, contentKeys); found {
		c.write = &text
		return c, true
	}
	c.edits = editsIn(args)
	return c, len(c.edits) > 0
}

// editsIn returns the replacements that arguments have: a list of them, or one.
func editsIn(args map[string]any) (edits []fileEdit) {
	list, _ := args["edits"].([]any)
	for _, item := range append(list, args) {
		edit, _ := item.(map[string]any)
		_, old, hasOld := textAt(edit, oldKeys)
		_, text, hasNew := textAt(edit, newKeys)
		if hasOld && hasNew {
			edits = append(edits, fileEdit{old, text})
		}
	}
	return edits
}

// textAt returns the first of the keys that has a text.
func textAt(args map[string]any, keys []string) (key, text string, ok bool) {
	for _, key := range keys {
		if text, ok := args[key].(string); ok {
			return key, text, true
		}
	}
	return "", "", false
}

// after returns what the file will be; ok is false if an edit does not match it.
func (c fileCall) after(before string) (text string, ok bool) {
	if c.write != nil {
		return *c.write, true
	}
	for _, edit := range c.edits {
		if edit.old == "" || !strings.Contains(before, edit.old) {
			return "", false
		}
		before = strings.Replace(before, edit.old, edit.new, 1)
	}
	return before, true
}

const (
	maxFileReads = 32 // in one rehearsal
	fileReadTime = 10 * time.Second
)

// showFile adds to an entry of the plan what a call changes in a file, or why that is not
// known.
func (r *Rehearsal) showFile(ctx context.Context, e Effect, p *Planned) {
	c, ok := asFileCall(e)
	if !ok {
		return
	}
	name := c.tool.Space + " " + c.path
	r.mu.Lock()
	before, known := r.files[name]
	reads := len(r.files)
	r.mu.Unlock()
	if !known {
		if reads >= maxFileReads {
			p.Unread = "the script changes too many files"
			return
		}
		if before, p.Unread = r.readFile(ctx, c); p.Unread != "" {
			return
		}
	}
	text, ok := c.after(before.text)
	if !ok {
		p.Unread = "the text to replace is not in the file"
		return
	}
	p.Diff = fileDiff(c.path, before.bytes(), []byte(text))
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.files == nil {
		r.files = map[string]upstreamFile{}
	}
	r.files[name] = upstreamFile{text, true}
}

// upstreamFile is a file of a server, as it is or as it would be.
type upstreamFile struct {
	text  string
	there bool
}

// bytes returns nil for a file that does not exist.
func (f upstreamFile) bytes() []byte {
	if !f.there {
		return nil
	}
	return []byte(f.text)
}

var missingFile = lazyregexp.New(`(?i)ENOENT|no such file|does not exist|not found`)

// readFile reads a file with a tool of the server; problem says why it cannot.
func (r *Rehearsal) readFile(ctx context.Context, c fileCall) (f upstreamFile, problem string) {
	reader, ok := r.readerFor(ctx, c)
	if !ok {
		return f, c.tool.Space + " has no read-only tool that reads one file"
	}
	args, _ := json.Marshal(map[string]string{c.key: c.path}) // texts always encode
	ctx, cancel := context.WithTimeout(ctx, fileReadTime)
	defer cancel()
	result, err := r.tools.Call(tool.ForPlan(ctx), tool.Call{Ref: reader, Args: args})
	if err != nil {
		return f, redact.Cut(err.Error(), 200)
	}
	view, err := result.View()
	switch text := view.Text(); {
	case err != nil:
		return f, err.Error()
	case !view.IsError && len(view.Content) == 1:
		return upstreamFile{text, true}, ""
	case view.IsError && missingFile().MatchString(text):
		return f, ""
	default:
		return f, redact.Cut(reader.String()+": "+text, 200)
	}
}

// readerFor returns the tool of the same server that reads the file that c changes: one
// that only reads, and needs nothing but the same argument. Of several it is the one that
// says that it reads texts, then the one with the shortest name.
func (r *Rehearsal) readerFor(ctx context.Context, c fileCall) (ref tool.Ref, ok bool) {
	var found []tool.Info
	for _, info := range r.toolsOf(ctx, c.tool.Space) {
		if info.Hints.ReadOnly && readsFile().MatchString(info.Name) && takesOnly(info.Input, c.key) {
			found = append(found, info)
		}
	}
	if len(found) == 0 {
		return ref, false
	}
	return slices.MinFunc(found, func(a, b tool.Info) int { return readerRank(a) - readerRank(b) }).Ref, true
}

func readerRank(info tool.Info) int {
	if strings.Contains(strings.ToLower(info.Name), "text") {
		return len(info.Name)
	}
	return 100 + len(info.Name)
}

// toolsOf lists the tools of a server.
func (r *Rehearsal) toolsOf(ctx context.Context, space string) []tool.Info {
	if f, ok := r.tools.(interface {
		In(ctx context.Context, namespace string) ([]tool.Info, bool)
	}); ok {
		list, _ := f.In(ctx, space)
		return list
	}
	if r.tools == nil {
		return nil
	}
	all, err := r.tools.Tools(ctx)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(all), func(info tool.Info) bool { return info.Space != space })
}

// takesOnly tells whether a schema has an argument, and requires no other.
func takesOnly(schema json.RawMessage, key string) bool {
	var s struct {
		Properties map[string]json.RawMessage
		Required   []string
	}
	if json.Unmarshal(schema, &s) != nil {
		return false
	}
	_, takes := s.Properties[key]
	return takes && !slices.ContainsFunc(s.Required, func(name string) bool { return name != key })
}

// Sample makes a value that a JSON Schema allows: the one the schema names (const,
// default, an example, the first of an enum), otherwise the empty value of its type with
// every property present. A schema without a type gives {}.
func Sample(schema json.RawMessage) json.RawMessage {
	var s map[string]any
	if json.Unmarshal(schema, &s) != nil {
		s = map[string]any{}
	}
	raw, err := json.Marshal(sample(s, s, 0))
	if err != nil {
		return json.RawMessage("{}")
	}
	return raw
}

// deepest bounds schemas that contain themselves.
const deepest = 8

func sample(root, s map[string]any, depth int) any {
	if named, ok := namedValue(s); ok {
		return named
	}
	if depth > deepest {
		return nil
	}
	if target, ok := resolve(root, s); ok {
		return sample(root, target, depth+1)
	}
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		if choices, ok := s[key].([]any); ok && len(choices) > 0 {
			if first, ok := choices[0].(map[string]any); ok {
				return sample(root, first, depth+1)
			}
		}
	}
	switch typeOf(s) {
	case "object":
		return sampleObject(root, s, depth)
	case "array":
		return sampleArray(root, s, depth)
	case "string":
		return ""
	case "integer", "number":
		if low, ok := s["minimum"]; ok {
			return low
		}
		return 0
	case "boolean":
		return false
	default:
		return nil
	}
}

func namedValue(s map[string]any) (any, bool) {
	for _, key := range []string{"const", "default"} {
		if v, ok := s[key]; ok {
			return v, true
		}
	}
	for _, key := range []string{"examples", "enum"} {
		if list, ok := s[key].([]any); ok && len(list) > 0 {
			return list[0], true
		}
	}
	return nil, false
}

// resolve follows a reference within the schema: "#/$defs/Issue".
func resolve(root, s map[string]any) (map[string]any, bool) {
	ref, ok := s["$ref"].(string)
	if !ok {
		return nil, false
	}
	for _, key := range []string{"$defs", "definitions"} {
		defs, _ := root[key].(map[string]any)
		if target, ok := defs[path.Base(ref)].(map[string]any); ok {
			return target, true
		}
	}
	return nil, false
}

// typeOf returns the schema's type, the first that is not null if there are several.
// Without a type, the other keywords decide.
func typeOf(s map[string]any) string {
	switch t := s["type"].(type) {
	case string:
		return t
	case []any:
		if i := slices.IndexFunc(t, func(v any) bool { return v != "null" }); i >= 0 {
			name, _ := t[i].(string)
			return name
		}
	}
	if _, ok := s["items"]; ok {
		return "array"
	}
	return "object"
}

func sampleObject(root, s map[string]any, depth int) any {
	object := map[string]any{}
	properties, _ := s["properties"].(map[string]any)
	for name, p := range properties {
		if inner, ok := p.(map[string]any); ok {
			object[name] = sample(root, inner, depth+1)
		}
	}
	return object
}

// sampleArray has one element, so that a script that reads the first one finds it.
func sampleArray(root, s map[string]any, depth int) any {
	items, ok := s["items"].(map[string]any)
	if !ok || depth >= deepest {
		return []any{}
	}
	return []any{sample(root, items, depth+1)}
}
