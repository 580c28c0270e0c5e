package clientfile

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

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
		Name:          e.name(key),
		URL:           e.text("url", "serverUrl", "httpUrl", "uri"),
		Args:          e.list("args"),
		Env:           e.environment(),
		EnvFile:       e.text("envFile"),
		Cwd:           e.text("cwd", "working_directory"),
		Transport:     e.transport(),
		Protocol:      e.text("protocol"),
		Headers:       e.headers(),
		BearerEnv:     e.text("bearerEnv", "bearer_env", "bearer_token_env_var"),
		Timeout:       e.duration("timeout", "tool_timeout_sec"),
		StartTimeout:  e.duration("startTimeout", "startup_timeout_sec"),
		InheritEnv:    e.list("inheritEnv"),
		CleanEnv:      rawjson.GetBool(e.raw, "cleanEnv"),
		Start:         e.text("start"),
		Idle:          e.duration("idle"),
		AllowedTools:  e.list("allowedTools", "includeTools", "enabled_tools", "available_tools"),
		DisabledTools: e.list("disabledTools", "excludeTools", "disabled_tools"),
		ReadOnly:      rawjson.GetBool(e.raw, "readOnly"),
		OAuth:         e.oauth(),
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
	o.ClientSecret = plainVariable.ReplaceAllString(e.text("clientSecret", "client_secret"), "$${env:$1}") // found when it is used
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

var firstLetter = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z]`) })

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
