package clientfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/duration"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/mcp/upstream"
)

// entryReader reads one server's entry. The keys are those of all clients: no two of
// them mean different things by one key.
type entryReader struct {
	forms forms
	raw   json.RawMessage
	warns *[]string
}

func (e entryReader) warn(format string, args ...any) {
	*e.warns = append(*e.warns, fmt.Sprintf(format, args...))
}

// disabled reports whether the entry is switched off.
func (e entryReader) disabled() bool {
	enabled, given := rawjson.Get(e.raw, "enabled")
	return rawjson.GetBool(e.raw, "disabled") || given && string(enabled) == "false"
}

// foreign reports whether the entry is not a server but a part of the client: an
// extension of Goose or Zed.
func (e entryReader) foreign() bool {
	switch e.text("type") {
	case "builtin", "platform", "frontend", "inline_python":
		return true
	}
	_, settings := e.find("settings")
	command, _ := e.find("command", "url")
	return settings != nil && command == "" || !rawjson.IsObject(e.raw)
}

// spec reads the entry.
func (e entryReader) spec(key string) upstream.Spec {
	if _, nested := e.find("transport"); rawjson.IsObject(nested) { // as Cline writes it
		rawjson.Each(nested, func(name string, value json.RawMessage) bool {
			e.raw = rawjson.Set(e.raw, strings.Replace(name, "type", "transport", 1), value)
			return true
		})
	}
	spec := upstream.Spec{
		Name: e.name(key),
		Settings: upstream.Settings{
			URL:           e.text("url", "serverUrl", "httpUrl", "uri"),
			Args:          e.list("args"),
			Env:           e.environment(),
			EnvFile:       e.text("envFile"),
			Cwd:           e.text("cwd", "working_directory"),
			Transport:     e.transport(),
			Protocol:      e.text("protocol"),
			Headers:       e.headers(),
			BearerEnv:     e.text("bearerEnv", "bearer_env", "bearer_token_env_var"),
			Timeout:       duration.Duration(e.duration("timeout", "tool_timeout_sec")),
			StartTimeout:  duration.Duration(e.duration("startTimeout", "startup_timeout_sec")),
			InheritEnv:    e.list("inheritEnv"),
			CleanEnv:      rawjson.GetBool(e.raw, "cleanEnv"),
			Start:         e.text("start"),
			Idle:          duration.Duration(e.duration("idle")),
			AllowedTools:  e.list("allowedTools", "includeTools", "enabled_tools", "available_tools"),
			DisabledTools: e.list("disabledTools", "excludeTools", "disabled_tools"),
			ReadOnly:      rawjson.GetBool(e.raw, "readOnly"),
			OAuth:         e.oauth(),
		},
	}
	e.command(&spec)
	if spec.Command != "" && spec.URL != "" {
		e.warn("has both command and url, the url is ignored")
		spec.URL = ""
	}
	for _, unsupported := range []string{"auth", "inputs"} {
		if _, there := rawjson.Get(e.raw, unsupported); there {
			e.warn("%s is not supported here", unsupported)
		}
	}
	return spec
}

// command reads the command, which some clients write together with its arguments.
func (e entryReader) command(spec *upstream.Spec) {
	_, raw := e.find("command", "cmd")
	if words, isList := rawjson.Items(raw); raw != nil && isList {
		all := e.texts("command", words)
		if len(all) > 0 {
			spec.Command, spec.Args = all[0], append(all[1:], spec.Args...)
		}
		return
	}
	spec.Command = e.text("command", "cmd")
}

// environment reads the variables. Codex and Goose also list names of variables that
// are passed on, or asked for.
func (e entryReader) environment() map[string]string {
	env := e.table("env", "environment", "envs")
	add := func(name, value string) {
		if env == nil {
			env = map[string]string{}
		}
		if _, given := env[name]; !given {
			env[name] = value
		}
	}
	for _, name := range e.list("env_vars") {
		add(name, "${"+name+"}")
	}
	for _, name := range e.list("env_keys") {
		e.forms.ask(Input{ID: name, Description: "Goose keeps it in its keyring", Secret: true})
		add(name, "${input:"+name+"}")
	}
	return env
}

func (e entryReader) headers() map[string]string {
	headers := e.table("headers", "http_headers")
	if _, options := e.find("requestOptions"); options != nil { // of Continue
		inner := e
		inner.raw = options
		headers = inner.table("headers")
	}
	for name, variable := range e.table("env_http_headers") {
		headers = with(headers, name, "${env:"+variable+"}")
	}
	if key := e.text("apiKey"); key != "" {
		headers = with(headers, "Authorization", "Bearer "+key)
	}
	return headers
}

func with(table map[string]string, key, value string) map[string]string {
	if table == nil {
		table = map[string]string{}
	}
	table[key] = value
	return table
}

// oauth reads the configuration of logins.
func (e entryReader) oauth() upstream.OAuth {
	_, raw := e.find("oauth")
	if raw == nil {
		return upstream.OAuth{}
	}
	e.raw = raw
	o := upstream.OAuth{ClientID: e.text("clientId", "client_id"), Issuer: e.text("issuer")}
	o.ClientSecret = plainVariable().ReplaceAllString(e.text("clientSecret", "client_secret"), "$${env:$1}") // found when it is used
	if _, scopes := e.find("scopes", "scope"); scopes != nil {
		if text, ok := rawjson.Text(scopes); ok {
			o.Scopes = strings.Fields(text)
		} else {
			o.Scopes = e.list("scopes", "scope")
		}
	}
	if _, port := e.find("callbackPort"); port != nil {
		if n, ok := rawjson.Number(port); ok && n > 0 && n < 65536 {
			o.RedirectPort = int(n)
		} else {
			e.warn("callbackPort is not a port")
		}
	}
	if _, page := e.find("authServerMetadataUrl"); page != nil {
		e.warn("authServerMetadataUrl is not supported here; give the issuer")
	}
	return o
}

var firstLetter = lazyregexp.New(`^[A-Za-z]`)

// name is the namespace: the one in the file, or the key with invalid characters
// replaced.
func (e entryReader) name(key string) string {
	if name := e.text("namespace"); name != "" {
		return name
	}
	name := Namespace(key)
	if name != key {
		e.warn("its tools are in namespace %s", name)
	}
	return name
}

// Namespace returns a name with the characters replaced that the name of an upstream
// cannot have.
func Namespace(key string) string {
	name := strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, key)
	if !firstLetter().MatchString(name) {
		name = "s" + name
	}
	return name[:min(len(name), 64)]
}

func (e entryReader) transport() string {
	kind := ""
	for _, key := range []string{"type", "transport"} {
		if _, raw := e.find(key); raw != nil && !rawjson.IsObject(raw) {
			kind = strings.ToLower(e.text(key))
		}
	}
	switch kind {
	case "http", "streamable-http", "streamablehttp", "streamable_http":
		return upstream.HTTP
	case "sse", "stdio":
		return kind
	case "", upstream.Auto, "remote", "local":
		return ""
	default:
		e.warn("type %q is unknown, it is detected", kind)
		return ""
	}
}

// find returns the first of the keys that exists, with its raw value.
func (e entryReader) find(keys ...string) (key string, raw json.RawMessage) {
	for _, key := range keys {
		if raw, ok := rawjson.Get(e.raw, key); ok && !rawjson.IsNull(raw) {
			return key, raw
		}
	}
	return "", nil
}

func (e entryReader) text(keys ...string) string {
	key, raw := e.find(keys...)
	if raw == nil {
		return ""
	}
	text, ok := rawjson.Text(raw)
	if !ok {
		e.warn("%s is not a string", key)
		return ""
	}
	return e.forms.convert(text)
}

// scalar reads a string, or a number or boolean as text, which users write instead
// of strings.
func (e entryReader) scalar(key string, raw json.RawMessage) (string, bool) {
	if text, ok := rawjson.Text(raw); ok {
		return e.forms.convert(text), true
	}
	if rawjson.IsNull(raw) || raw[0] == '{' || raw[0] == '[' {
		e.warn("%s contains something that is not a string", key)
		return "", false
	}
	return string(raw), true
}

func (e entryReader) list(keys ...string) []string {
	key, raw := e.find(keys...)
	if raw == nil {
		return nil
	}
	items, ok := rawjson.Items(raw)
	if !ok {
		e.warn("%s is not a list", key)
	}
	return e.texts(key, items)
}

func (e entryReader) texts(key string, items []json.RawMessage) (list []string) {
	for _, item := range items {
		if text, ok := e.scalar(key, item); ok {
			list = append(list, text)
		}
	}
	return list
}

func (e entryReader) table(keys ...string) map[string]string {
	key, raw := e.find(keys...)
	if raw == nil {
		return nil
	}
	if !rawjson.IsObject(raw) {
		e.warn("%s is not an object", key)
		return nil
	}
	table := map[string]string{}
	rawjson.Each(raw, func(name string, value json.RawMessage) bool {
		if text, ok := e.scalar(key+"."+name, value); ok {
			table[name] = text
		}
		return true
	})
	return table
}

// duration reads "30s", or a number: some clients mean seconds and others
// milliseconds, so numbers from 1000 on are milliseconds.
func (e entryReader) duration(keys ...string) time.Duration {
	key, raw := e.find(keys...)
	if raw == nil {
		return 0
	}
	if n, ok := rawjson.Number(raw); ok && n > 0 && n < 1e10 {
		if n >= 1000 && key != "tool_timeout_sec" {
			return time.Duration(n * float64(time.Millisecond))
		}
		return time.Duration(n * float64(time.Second))
	}
	if text, ok := rawjson.Text(raw); ok {
		if d, err := time.ParseDuration(text); err == nil && d > 0 {
			return d
		}
	}
	e.warn("%s is not a duration", key)
	return 0
}

// Launch is how a client reaches a server: it starts a command, or it connects to a
// URL.
type Launch struct {
	Command string
	Args    []string
	URL     string
	Headers map[string]string
}

// The entries, whose fields are in the order in which clients write them.
type (
	commandEntry struct {
		Type    string   `json:"type,omitempty"`
		Command string   `json:"command"`
		Args    []string `json:"args"`
	}
	localEntry struct {
		Type    string   `json:"type"`
		Command []string `json:"command"`
		Enabled bool     `json:"enabled"`
	}
	urlEntry struct {
		Type      string            `json:"type,omitempty"`
		URL       string            `json:"url,omitempty"`
		ServerURL string            `json:"serverUrl,omitempty"`
		HTTPURL   string            `json:"httpUrl,omitempty"`
		Headers   map[string]string `json:"headers,omitempty"`
		Enabled   bool              `json:"enabled,omitempty"`
	}
	codexURL struct {
		URL     string            `json:"url"`
		Headers map[string]string `json:"http_headers,omitempty"`
	}
	extension struct {
		Enabled     bool              `json:"enabled"`
		Type        string            `json:"type"`
		Name        string            `json:"name"`
		Description string            `json:"description"`
		Command     string            `json:"cmd,omitempty"`
		Args        []string          `json:"args,omitempty"`
		URI         string            `json:"uri,omitempty"`
		Headers     map[string]string `json:"headers,omitempty"`
		Timeout     int               `json:"timeout"`
	}
)

func stdioPlain(l Launch) any { return commandEntry{Command: l.Command, Args: l.Args} }

func stdioTyped(l Launch) any {
	return commandEntry{Type: "stdio", Command: l.Command, Args: l.Args}
}

// entryOf returns entries of clients that write the URL under a key, with a type if
// they have one: without it, several of them take it for the former transport.
func entryOf(command func(Launch) any, kind, key string) func(Launch) (any, error) {
	return func(l Launch) (any, error) {
		if l.URL == "" {
			return command(l), nil
		}
		e := urlEntry{Type: kind, Headers: l.Headers}
		switch key {
		case "serverUrl":
			e.ServerURL = l.URL
		case "httpUrl":
			e.HTTPURL = l.URL
		default:
			e.URL = l.URL
		}
		return e, nil
	}
}

func onlyCommand(l Launch) (any, error) {
	if l.URL != "" {
		return nil, fault.New(fault.InvalidParams, "Claude Desktop starts commands only").
			WithHint("omit --url; or add the URL in its settings, under Connectors")
	}
	return stdioPlain(l), nil
}

func opencodeEntry(l Launch) (any, error) {
	if l.URL != "" {
		return urlEntry{Type: "remote", URL: l.URL, Headers: l.Headers, Enabled: true}, nil
	}
	return localEntry{"local", append([]string{l.Command}, l.Args...), true}, nil
}

func codexEntry(l Launch) (any, error) {
	if l.URL != "" {
		return codexURL{l.URL, l.Headers}, nil
	}
	return stdioPlain(l), nil
}

// listedEntry is an entry of Continue, whose headers are among the options of requests.
type listedEntry struct {
	Name    string          `json:"name"`
	Type    string          `json:"type"`
	Command string          `json:"command,omitempty"`
	Args    []string        `json:"args,omitempty"`
	URL     string          `json:"url,omitempty"`
	Options *requestOptions `json:"requestOptions,omitempty"`
}

type requestOptions struct {
	Headers map[string]string `json:"headers"`
}

func continueEntry(l Launch) (any, error) {
	e := listedEntry{Name: Key, Type: "stdio", Command: l.Command, Args: l.Args, URL: l.URL}
	if l.URL != "" {
		e.Type = "streamable-http"
	}
	if len(l.Headers) > 0 {
		e.Options = &requestOptions{l.Headers}
	}
	return e, nil
}

func gooseEntry(l Launch) (any, error) {
	e := extension{Enabled: true, Type: "stdio", Name: "luanette", Description: "All your tool servers", Command: l.Command, Args: l.Args, Timeout: 300}
	if l.URL != "" {
		e.Type, e.URI, e.Headers = "streamable_http", l.URL, l.Headers
	}
	return e, nil
}

func claudeAdd(name string, l Launch) []string {
	if l.URL == "" {
		return append([]string{"claude", "mcp", "add", "-s", "user", name, "--", l.Command}, l.Args...)
	}
	argv := []string{"claude", "mcp", "add", "-s", "user", "-t", "http", name, l.URL}
	for _, key := range slices.Sorted(maps.Keys(l.Headers)) {
		argv = append(argv, "-H", key+": "+l.Headers[key])
	}
	return argv
}

// codexAdd leaves headers to an edit, which codex has no flag for.
func codexAdd(name string, l Launch) []string {
	switch {
	case l.URL == "":
		return append([]string{"codex", "mcp", "add", name, "--", l.Command}, l.Args...)
	case len(l.Headers) > 0:
		return nil
	default:
		return []string{"codex", "mcp", "add", name, "--url", l.URL}
	}
}

func geminiAdd(name string, l Launch) []string {
	if l.URL == "" {
		return append([]string{"gemini", "mcp", "add", "-s", "user", name, l.Command}, l.Args...)
	}
	argv := []string{"gemini", "mcp", "add", "-s", "user", "-t", "http"}
	for _, key := range slices.Sorted(maps.Keys(l.Headers)) {
		argv = append(argv, "-H", key+": "+l.Headers[key])
	}
	return append(argv, name, l.URL)
}

// Input is a value that a client asks a person for, and does not keep in the file.
type Input struct {
	ID          string   `json:"id"`
	Description string   `json:"description,omitempty"`
	Secret      bool     `json:"secret,omitempty"`
	Default     string   `json:"default,omitempty"`
	Options     []string `json:"options,omitempty"`
}

// forms converts a client's ways to write variables into ours: ${VAR},
// ${VAR:-default}, ${env:VAR}, ${file:PATH}, and ${input:ID} for what is asked.
type forms struct {
	variables Variables
	home      string
	project   string   // the folder of the project the file belongs to, or ""
	folder    string   // of the file
	inputs    *[]Input // that were found
}

// Variables names how a client writes variables.
type Variables string

// The ways to write variables. VSCode's are understood everywhere.
const (
	VSCode   Variables = ""         // ${env:VAR}, ${userHome}, ${workspaceFolder}, ${input:ID}; also ${VAR} and ${VAR:-default}
	Shell    Variables = "shell"    // $VAR, too
	OpenCode Variables = "opencode" // {env:VAR}, {file:PATH}
	Continue Variables = "continue" // ${{ secrets.NAME }}
)

var (
	dollarName    = lazyregexp.New(`\$([A-Za-z_][A-Za-z0-9_]*)`)
	braceForm     = lazyregexp.New(`\{(env|file):([^}]*)\}`)
	secretsForm   = lazyregexp.New(`\$\{\{\s*(?:secrets|inputs)\.([A-Za-z0-9_.-]+)\s*\}\}`)
	plainVariable = lazyregexp.New(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)
	inputForm     = lazyregexp.New(`\$\{input:([^}]+)\}`)
)

func (f forms) convert(text string) string {
	if !strings.ContainsAny(text, "${") {
		return text
	}
	switch f.variables {
	case Shell:
		text = dollarName().ReplaceAllString(text, "${${1}}")
	case OpenCode:
		text = braceForm().ReplaceAllStringFunc(text, f.brace)
	case Continue:
		text = secretsForm().ReplaceAllStringFunc(text, func(form string) string {
			name := secretsForm().FindStringSubmatch(form)[1]
			f.ask(Input{ID: name, Description: "Continue keeps it as a secret", Secret: true})
			return "${input:" + name + "}"
		})
	}
	for _, m := range inputForm().FindAllStringSubmatch(text, -1) {
		f.ask(Input{ID: m[1]})
	}
	return f.folders(text)
}

// brace converts a form of opencode.
func (f forms) brace(form string) string {
	m := braceForm().FindStringSubmatch(form)
	if m[1] == "env" {
		return "${env:" + m[2] + "}"
	}
	path := m[2]
	if rest, below := strings.CutPrefix(path, "~/"); below {
		path = filepath.Join(f.home, rest)
	} else if !filepath.IsAbs(path) {
		path = filepath.Join(f.folder, path)
	}
	return "${file:" + path + "}"
}

// folders replaces the folders that are known.
func (f forms) folders(text string) string {
	pairs := []string{"${pathSeparator}", string(filepath.Separator), "${/}", string(filepath.Separator)}
	if f.home != "" {
		pairs = append(pairs, "${userHome}", f.home)
	}
	if f.project != "" {
		pairs = append(pairs, "${workspaceFolder}", f.project, "${workspaceFolderBasename}", filepath.Base(f.project))
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// ask records an input.
func (f forms) ask(input Input) {
	if !slices.ContainsFunc(*f.inputs, func(known Input) bool { return known.ID == input.ID }) {
		*f.inputs = append(*f.inputs, input)
	}
}
