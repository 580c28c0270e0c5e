package builtin

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/tools/toolset"
)

// ScriptRunner runs scripts.
type ScriptRunner interface {
	Run(ctx context.Context, q script.Request) (script.Outcome, error)
	// Prepare checks params against describe() and fills in defaults.
	Prepare(ctx context.Context, q script.Request) (script.Request, error)
	// Describe calls a script's describe(); only the source of the request is used, with
	// its name, hash and language.
	Describe(ctx context.Context, of script.Request) (script.Description, error)
	Modules() []host.Module
}

// ScriptStore stores scripts.
type ScriptStore interface {
	Put(ctx context.Context, content io.Reader, d artifact.Details) (a artifact.Artifact, created bool, err error)
	Get(ctx context.Context, ref cas.Ref) (artifact.Artifact, error)
	Read(ctx context.Context, ref cas.Ref, limit int64) ([]byte, error)
	Resolve(ctx context.Context, text string) (cas.Ref, error)
	Search(ctx context.Context, q artifact.Query) (artifact.Page, error)
	Ancestors(ctx context.Context, ref cas.Ref, limit int) ([]artifact.Artifact, error)
	Children(ctx context.Context, ref cas.Ref, limit int) ([]artifact.Artifact, error)
	Tags(ctx context.Context, prefix string, limit int) ([]string, error)
}

// Publisher publishes scripts as tools.
type Publisher interface {
	Publish(ctx context.Context, want script.PublishRequest) (script.Version, error)
	Unpublish(ctx context.Context, name string) (bool, error)
	History(ctx context.Context, name string) ([]script.Version, error)
}

// The artifact types of scripts, by language.
var scriptMIME = map[string]string{"lua": "text/x-lua", "javascript": "text/javascript", "typescript": "text/typescript"}

// scriptTag is the tag of scripts in all languages, unless they have a type of their
// own. It is not shown.
const scriptTag = "kind:script"

// shownTags returns a script's tags without internal ones.
func shownTags(tags []string) []string {
	return slices.DeleteFunc(append([]string{}, tags...), func(tag string) bool { return tag == scriptTag })
}

// Scripts makes the tools that run, store and publish scripts.
func Scripts(r ScriptRunner, s ScriptStore, p Publisher, sessions SessionStore) []Tool {
	t := scriptTools{r, s, p, sessions}
	return []Tool{
		toolset.AsScriptRunner(runs[evalIn, Evaluated]("lua_eval", tool.Hints{}, t.eval)),
		runs[describeIn, Described]("lua_describe", tool.Hints{ReadOnly: true, ClosedWorld: true}, t.describe),
		Define("lua_help", tool.Hints{ReadOnly: true, ClosedWorld: true}, t.help),
		Define("script_store", tool.Hints{NonDestructive: true, Idempotent: true, ClosedWorld: true}, t.store),
		Define("script_search", tool.Hints{ReadOnly: true, ClosedWorld: true}, t.search),
		Define("script_get", tool.Hints{ReadOnly: true, ClosedWorld: true}, t.get),
		Define("script_publish", tool.Hints{Idempotent: true, ClosedWorld: true}, t.publish),
		Define("script_unpublish", tool.Hints{Idempotent: true, ClosedWorld: true}, t.unpublish),
		Define("script_history", tool.Hints{ReadOnly: true, ClosedWorld: true}, t.history),
	}
}

type scriptTools struct {
	runner    ScriptRunner
	scripts   ScriptStore
	publisher Publisher
	sessions  SessionStore
}

// runs makes a tool that runs a script. Out describes the part of the structured
// result that is the same for every script.
func runs[In, Out any](name string, hints tool.Hints, do func(ctx context.Context, call tool.Call, in In) (tool.Result, error)) Tool {
	return toolset.DefineResult[In, Out](texts, name, hints, do)
}

// load finds a script and its source.
func (t scriptTools) load(ctx context.Context, hash string) (cas.Ref, string, error) {
	ref, err := t.scripts.Resolve(ctx, strings.TrimSpace(hash))
	if err != nil {
		return cas.Ref{}, "", err
	}
	source, err := t.scripts.Read(ctx, ref, script.MaxSource)
	return ref, string(source), err
}

type hashIn struct {
	ScriptHash string `json:"script_hash" jsonschema:"hash of a stored script, or at least its first 12 digits" min:"12" max:"70"`
}

type describeIn struct {
	ScriptHash string `json:"script_hash,omitempty" jsonschema:"hash of a stored script, or at least its first 12 digits" max:"70"`
	Script     string `json:"script,omitempty" jsonschema:"alternative: cas:HASH" max:"70"`
}

// named returns the hash of a script given as script_hash or script.
func named(tool, hash, script string) (string, error) {
	if (hash == "") == (script == "") {
		return "", fault.New(fault.InvalidParams, "%s needs either script_hash or script", tool).
			WithHint(`store the script with script_store, then give its hash: {"script_hash": "…"}`)
	}
	name := strings.TrimSpace(cmp.Or(hash, script))
	if strings.ContainsAny(name, " \t\n(") {
		return "", fault.New(fault.InvalidParams, "%s takes the hash of a script, not the script itself", tool).
			WithHint("store it with script_store, which returns the hash; lua_eval runs code directly")
	}
	return name, nil
}

// Described is the result of lua_describe.
type Described struct {
	Hash        string   `json:"hash"`
	Name        string   `json:"name,omitempty"`
	Description string   `json:"description"`
	Params      Object   `json:"params,omitempty" jsonschema:"by name: type, required, default, description, enum"`
	InputSchema Object   `json:"input_schema,omitempty" jsonschema:"the params as JSON Schema"`
	Returns     string   `json:"returns,omitempty"`
	Tags        []string `json:"tags,omitempty"`
	Warnings    []string `json:"warnings,omitempty" jsonschema:"fields of describe() that were ignored"`
}

// Text returns a few lines.
func (d Described) Text() string {
	if d.Name == "" {
		d.Name = d.Hash[:cas.MinPrefix]
	}
	lines := []string{"Script: " + d.Name, "Description: " + d.Description}
	if len(d.Params) > 0 {
		lines = append(lines, "Params: "+string(d.Params))
	}
	if d.Returns != "" {
		lines = append(lines, "Returns: "+d.Returns)
	}
	return strings.Join(append(lines, d.Warnings...), "\n")
}

func (t scriptTools) describe(ctx context.Context, _ tool.Call, in describeIn) (tool.Result, error) {
	name, err := named("lua_describe", in.ScriptHash, in.Script)
	if err != nil {
		return tool.Result{}, err
	}
	ref, source, err := t.load(ctx, name)
	if err != nil {
		return tool.Result{}, err
	}
	d, err := t.runner.Describe(ctx, script.Request{Source: source, Hash: ref})
	if err != nil {
		return script.ToolFailure(script.Outcome{}, err), nil
	}
	out := Described{Hash: ref.String(), Description: script.NoDescription}
	if d.Defined {
		out = Described{
			Hash: ref.String(), Name: d.Name, Description: d.Description, Params: Object(d.Table()), InputSchema: Object(d.Schema()),
			Returns: d.Returns, Tags: d.Tags, Warnings: d.Warnings,
		}
	}
	return tool.Output(out.Text(), out)
}

type storeIn struct {
	Content  string   `json:"content" jsonschema:"the script: it defines main(params), and describe() to be found and published" min:"1" max:"1048576"`
	Language string   `json:"language,omitempty" jsonschema:"language; default lua, or JavaScript if it is not valid Lua" enum:"lua,javascript,typescript"`
	Tags     []string `json:"tags,omitempty" jsonschema:"tags to find it by, such as style:ambient; a type tag is added" max:"64"`
	Creator  string   `json:"creator,omitempty" jsonschema:"creator" max:"256"`
	Parent   string   `json:"parent,omitempty" jsonschema:"hash of the script it was derived from"`
}

// Stored is the result of script_store.
type Stored struct {
	Hash        string   `json:"hash" jsonschema:"hash of the script"`
	Created     bool     `json:"created" jsonschema:"false if the same script was stored before"`
	Language    string   `json:"language" jsonschema:"its language"`
	Tags        []string `json:"tags"`
	Name        string   `json:"name,omitempty"`
	Description string   `json:"description,omitempty"`
	Warnings    []string `json:"warnings,omitempty" jsonschema:"problems of the script, which was stored anyway"`
}

// Text returns the hash and the problems.
func (s Stored) Text() string {
	text := "Stored script " + s.Hash
	if s.Name != "" {
		text = "Stored script " + s.Name + " as " + s.Hash
	}
	return strings.Join(append([]string{text}, s.Warnings...), "\n")
}

func (t scriptTools) store(ctx context.Context, _ tool.Call, in storeIn) (Stored, error) {
	d, problem := t.recognize(ctx, &in)
	details := artifact.Details{MIME: scriptMIME[in.Language], Tags: in.Tags, Creator: in.Creator}
	if !slices.ContainsFunc(in.Tags, func(tag string) bool { return strings.HasPrefix(tag, "type:") }) {
		details.Tags = append(slices.Clone(in.Tags), "type:"+in.Language, scriptTag)
	}
	if in.Parent != "" {
		parent, err := t.scripts.Resolve(ctx, in.Parent)
		if err != nil {
			return Stored{}, fault.Wrap(fault.CodeOf(err), err, "find parent")
		}
		if _, err := t.scripts.Get(ctx, cas.Sum([]byte(in.Content))); err != nil { // one that is known keeps its ancestors: an author returned to it
			details.Parent = parent
		}
	}
	warnings := d.Warnings
	if problem != nil {
		warnings = append(warnings, problem.Error())
	}
	details.Name, details.Description = clip(d.Name, 256), clip(d.Description, 8<<10)
	details.Tags = append(details.Tags, d.Tags...)
	a, created, err := t.scripts.Put(ctx, strings.NewReader(in.Content), details)
	if err != nil {
		return Stored{}, err
	}
	return Stored{a.Hash.String(), created, script.LanguageOf(a.MIME), shownTags(a.Tags), a.Name, a.Description, warnings}, nil
}

// recognize describes a script in the given language. If it is not valid in that
// language but is valid in the other one, it uses the other one: the hash identifies
// these bytes permanently, and they are valid in one language only.
func (t scriptTools) recognize(ctx context.Context, in *storeIn) (script.Description, error) {
	in.Language = cmp.Or(in.Language, script.Lua)
	describe := func(word string) (script.Description, error) {
		return t.runner.Describe(ctx, script.Request{Source: in.Content, Language: script.LanguageOf(scriptMIME[word])})
	}
	d, err := describe(in.Language)
	if !unreadable(err) {
		return d, err
	}
	other := script.JavaScript
	if in.Language != script.Lua {
		other = script.Lua
	}
	if better, tried := describe(other); !unreadable(tried) {
		in.Language = other
		return better, tried
	}
	return d, err
}

// unreadable reports whether a script is not valid in its language.
func unreadable(err error) bool {
	var failed *script.Error
	return errors.As(err, &failed) && failed.Kind == script.SyntaxError
}

func clip(text string, limit int) string { return text[:min(len(text), limit)] }

// ScriptView is a stored script as search shows it.
type ScriptView struct {
	Hash        string    `json:"hash"`
	Name        string    `json:"name,omitempty"`
	Description string    `json:"description,omitempty"`
	Tags        []string  `json:"tags"`
	Creator     string    `json:"creator,omitempty"`
	Parent      string    `json:"parent,omitempty" jsonschema:"hash of the script it was derived from"`
	CreatedAt   time.Time `json:"created_at"`
}

func scriptView(a *artifact.Artifact) ScriptView {
	v := ScriptView{
		Hash: a.Hash.String(), Name: a.Name, Description: a.Description, Tags: shownTags(a.Tags), Creator: a.Creator, CreatedAt: a.CreatedAt.UTC(),
	}
	if !a.Parent.IsZero() {
		v.Parent = a.Parent.String()
	}
	return v
}
