// Package api is what the rest of the program knows of a service that is not an MCP
// server, and whose operations are offered as tools all the same. Package upstream makes
// an upstream of any API, so that everything that works for MCP servers works for it.
package api

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/sandbox/launch"
	"github.com/luanette/luanette/internal/sandbox/profile"
	"github.com/luanette/luanette/internal/store/cas"
)

// API is a service whose operations are tools. All methods may be called concurrently.
type API interface {
	// List returns the tools. It may be called often and must be cheap if nothing changed.
	List(ctx context.Context) (Listing, error)
	// Call calls a tool and returns the result of tools/call as MCP has it. A failure that
	// the service reports is a result with isError; an error means that the service was not
	// asked, or that nobody knows its answer. Errors are faults and contain no credentials.
	// The API itself repeats what may be repeated.
	Call(ctx context.Context, call Call) (json.RawMessage, error)
	// Close ends everything that the API started, and waits for that.
	Close()
}

// Listing is the tools of an API and what it says about itself.
type Listing struct {
	Title        string // of the service; empty: not known
	Version      string
	Instructions string            // how the tools are used; empty: nothing to say
	Tools        []json.RawMessage // definitions as in tools/list
	LeftOut      []string          // why operations are not offered
}

// Call is one call of a tool.
type Call struct {
	Tool      string
	Arguments json.RawMessage // an object, or empty
	// Progress reports that the call goes on, which also extends its timeout. Total is 0 if
	// it is not known. It is never nil.
	Progress func(done, total float64, message string)
}

// Opener opens an API. What Environment has is for as long as the API is open.
type Opener func(ctx context.Context, env Environment) (API, error)

// Environment is what an API gets from the program.
type Environment struct {
	Name     string   // of the upstream
	Settings Settings // with their secrets
	Header   http.Header
	TLS      *tls.Config
	Login    Login // nil: there are no logins

	DialControl func(network, address string, conn syscall.RawConn) error // may refuse an address; may be nil
	Proxy       func(*http.Request) (*url.URL, error)

	Files      Files            // nil: contents cannot be stored
	Sandbox    *launch.Launcher // starts programs; nil: those with a sandbox are not started
	Tracer     trace.Tracer
	Propagator propagation.TextMapPropagator
	Log        *slog.Logger
	MaxAnswer  int           // bytes of an answer that is not stored as a file
	Timeout    time.Duration // of a call without progress; zero: none
	MaxTime    time.Duration // of a call in total

	// Changed requests a new List. It does not block.
	Changed func()
}

// RefusedCredentials tells callers why the service does not accept a call.
func (e Environment) RefusedCredentials() string {
	return "The service does not accept the credentials of upstream " + e.Name + ", which its configuration has."
}

// Login has the tokens for a service that requires a login.
type Login interface {
	// Token is the bearer token for requests to base; "" for none.
	Token(ctx context.Context, base string) (string, error)
	// Refused returns another token after the service has refused one.
	Refused(ctx context.Context, base string, refusal Refusal) (string, error)
	// At returns the same login for a service that names the endpoint of its tokens.
	At(tokenURL string) Login
}

// Refusal is an answer of a service that requires other credentials.
type Refusal struct {
	Status    int
	Challenge string // WWW-Authenticate
	Token     string // that was sent; may be empty
}

// Files stores contents that are not text, and finds those that callers name by a hash or
// an artifact's id.
type Files interface {
	PutFile(ctx context.Context, content io.Reader, mime string) (cas.File, error)
	FindFile(ctx context.Context, name string) (cas.File, error)
}

// maxName is the length of a tool's name with the namespace in front of it that clients
// see; many of them take no longer ones.
const maxName = 64

// NameBudget is what the tools of an upstream may use of maxName.
func NameBudget(upstream string) int { return max(maxName-len(upstream)-len("__"), 20) }

// HashedName is a name within a budget that ends with a hash of what it names, for names
// that are too long or that several operations would have. So it depends on no other
// operation.
func HashedName(name, named string, budget int) string {
	sum := sha256.Sum256([]byte(named))
	head := name[:min(len(name), budget-9)]
	return strings.TrimRight(head, "_") + "_" + hex.EncodeToString(sum[:4])
}

// maxDescription bounds the description of a tool.
const maxDescription = 1200

// Shorten cuts a text at the end of a paragraph or sentence, if there is one.
func Shorten(text string) string {
	if len(text) <= maxDescription {
		return text
	}
	text = strings.ToValidUTF8(text[:maxDescription], "")
	for _, end := range []string{"\n\n", ". ", "\n", " "} {
		if i := strings.LastIndex(text, end); i > maxDescription/2 {
			return strings.TrimSpace(text[:i+1]) + " …"
		}
	}
	return text + " …"
}

// maxDefinitions is how many bytes of $defs a schema may have. Types that come later are
// plain objects.
const maxDefinitions = 64 << 10

// Definitions are the schemas of types that a schema refers to.
type Definitions struct {
	// Write appends the schema of a type. It may refer to further ones.
	Write func(out []byte, name string) []byte

	names []string // in the order of their first use
	known map[string]bool
}

// Refer appends a reference to a type.
func (d *Definitions) Refer(out []byte, name string) []byte {
	if !d.known[name] {
		if d.known == nil {
			d.known = map[string]bool{}
		}
		d.known[name] = true
		d.names = append(d.names, name)
	}
	return append(rawjson.AppendText(append(out, `{"$ref":`...), "#/$defs/"+name), '}')
}

// AppendTo appends the member $defs to a schema that is not closed yet.
func (d *Definitions) AppendTo(out []byte) []byte {
	if len(d.names) == 0 {
		return out
	}
	out = append(out, `,"$defs":{`...)
	start := len(out)
	for i := 0; i < len(d.names); i++ { // the list grows
		if i > 0 {
			out = append(out, ',')
		}
		out = append(rawjson.AppendText(out, d.names[i]), ':')
		if len(out)-start > maxDefinitions {
			out = append(out, `{"type":"object"}`...)
			continue
		}
		out = d.Write(out, d.names[i])
	}
	return append(out, '}')
}

// Operation is what selectors see of an operation.
type Operation struct {
	Names  []string // its own name, and that of its tool
	Method string   // of HTTP, or query or mutation
	Path   string
	Tags   []string // or the service that it belongs to
}

// selectorKinds are what selectors look at.
var selectorKinds = []string{"tag", "path", "method", "operation"}

func (s Settings) checkSelectors() error {
	for _, selector := range slices.Concat(s.Include, s.Exclude) {
		kind, text, ok := strings.Cut(selector, ":")
		if !ok || text == "" || !slices.Contains(selectorKinds, kind) {
			return fmt.Errorf("%q selects no operations: write tag:NAME, path:PATTERN, method:NAME or operation:PATTERN", selector)
		}
	}
	return nil
}

// Selects reports whether an operation is offered: included, if anything is, and not
// excluded.
func (s Settings) Selects(op Operation) bool {
	if len(s.Include) > 0 && !slices.ContainsFunc(s.Include, op.matches) {
		return false
	}
	return !slices.ContainsFunc(s.Exclude, op.matches)
}

// matches reports whether a selector such as tag:issues is about the operation.
func (op Operation) matches(selector string) bool {
	kind, pattern, _ := strings.Cut(selector, ":")
	like := func(text string) bool { return like(strings.ToLower(pattern), strings.ToLower(text)) }
	switch kind {
	case "tag":
		return slices.ContainsFunc(op.Tags, like)
	case "path":
		return like(op.Path)
	case "method":
		return like(op.Method)
	case "operation":
		return slices.ContainsFunc(op.Names, like)
	}
	return false
}

// like reports whether a text is as a pattern says, in which * stands for any text.
func like(pattern, text string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == text
	}
	text, ok := strings.CutPrefix(text, head)
	if !ok {
		return false
	}
	for i := 0; i <= len(text); i++ {
		if like(rest, text[i:]) {
			return true
		}
	}
	return false
}

// minSecret is the length of the shortest text that is hidden. Shorter ones are in too
// many other texts.
const minSecret = 6

// Credentials are the configured credentials of a service.
type Credentials [][]byte

// Credentials are those in the settings and headers.
func (e Environment) Credentials() (all Credentials) {
	add := func(text string) {
		if len(text) >= minSecret {
			all = append(all, []byte(text))
		}
	}
	s := e.Settings
	for _, value := range slices.Concat(slices.Collect(maps.Values(s.Query)), slices.Collect(maps.Values(s.Cookies)), []string{s.Password}) {
		add(value)
	}
	for name, values := range e.Header {
		if strings.HasPrefix(name, "Accept") || name == "User-Agent" || name == "Content-Type" {
			continue
		}
		for _, value := range values {
			if scheme, rest, ok := strings.Cut(value, " "); ok && !strings.Contains(rest, " ") && len(scheme) < 10 {
				value = rest
			}
			add(value)
		}
	}
	return all
}

// Hide removes the credentials from what a service answered. Some services repeat them.
func (c Credentials) Hide(text []byte) []byte {
	for _, secret := range c {
		if bytes.Contains(text, secret) {
			text = bytes.ReplaceAll(text, secret, []byte("[secret]"))
		}
	}
	return text
}

// CommandTool is a program of this machine that is a tool. Its arguments are templates:
// {{name}} is replaced by a value, {{name...}} by one argument per item of a list, and
// {{?name}} by nothing, on the condition that name is true.
type CommandTool struct {
	Description string
	Args        []Argument        // the first is the program
	Params      json.RawMessage   // schemas of params by name; those of others follow from the templates
	Stdin       string            // the param that the program gets as standard input; "" is none
	Dash        []string          // params whose values may begin with a dash
	Dir         string            // where it runs
	Env         map[string]string `vars:"secret"`
	Timeout     time.Duration
	Output      string // one of Outputs
	MaxBytes    int    // of the output; the rest is cut off
	ReadOnly    bool
	Idempotent  bool
	Sandbox     profile.Profile // what the program may reach
}

// Argument is one argument, or several that are left out together if a value is missing.
type Argument struct {
	Texts    []string
	Optional bool
}

// What the output of a program is.
const (
	OutputText  = "text"
	OutputLines = "lines"
	OutputJSON  = "json"
)

// Outputs lists them.
func Outputs() []string { return []string{OutputText, OutputLines, OutputJSON} }

// commandsProblem reports what is wrong with the settings of commands.
func (s Settings) commandsProblem() error {
	for _, name := range slices.Sorted(maps.Keys(s.Commands)) {
		if c := s.Commands[name]; len(c.Args) == 0 || c.Args[0].Optional || c.Args[0].Texts[0] == "" {
			return fmt.Errorf("%s names no program", name)
		}
	}
	return nil
}

// defaultReload is how often a service is asked for its description.
const defaultReload = time.Hour

// Poll calls look every Settings.Reload until ctx ends; never if that is negative.
func (s Settings) Poll(ctx context.Context, look func(context.Context)) {
	if s.Reload < 0 {
		<-ctx.Done()
		return
	}
	interval := time.Duration(s.Reload)
	interval = cmp.Or(interval, defaultReload)
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			look(ctx)
		}
	}
}

// OperationKey is the key in a definition's _meta with the request that the tool makes. A
// tool that is sent elsewhere has another definition, which pins notice.
const OperationKey = "luanette/operation"

// NextPageToken is the member of results that continues a list, and PageToken the argument
// that takes it.
const (
	NextPageToken = "next_page_token"
	PageToken     = "page_token"
)

// PageSchema describes the argument that continues a list.
const PageSchema = `{"type":"string","description":"Continues a list: next_page_token of the result before, with the other arguments unchanged."}`

// Annotations of tools that only read, and of those that may do anything.
const (
	ReadOnly = `{"readOnlyHint":true,"idempotentHint":true,"destructiveHint":false}`
	Writes   = `{"readOnlyHint":false}`
)

// Content is content with one text.
func Content(text string) json.RawMessage {
	return append(rawjson.AppendText([]byte(`[{"type":"text","text":`), text), `}]`...)
}

// Result is the result of tools/call with a text for models and an object for programs.
func Result(text string, structured json.RawMessage) json.RawMessage {
	return rawjson.Set(rawjson.Set(nil, "content", Content(text)), "structuredContent", structured)
}

// Failure is the result of a call whose failure the service reports.
func Failure(text string, structured json.RawMessage) json.RawMessage {
	return rawjson.Set(Result(text, structured), "isError", json.RawMessage("true"))
}

// Object makes an object of a value, as structured content must be one: a list becomes its
// items, another value its result.
func Object(value json.RawMessage) json.RawMessage {
	switch rawjson.First(value) {
	case '{':
		return value
	case '[':
		return rawjson.Set(nil, "items", value)
	}
	return rawjson.Set(nil, "result", value)
}
