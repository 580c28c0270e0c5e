package upstream

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
)

// ParseServers reads the server list of another client: .mcp.json and
// claude_desktop_config.json, Cursor's mcp.json (mcpServers), VS Code's mcp.json and
// settings (servers, mcp.servers). Comments and trailing commas are allowed. The
// specs are in the order of the file, without disabled servers. Warnings name what
// is not supported; they contain no values.
func ParseServers(data []byte, getenv func(string) (string, bool)) (specs []Spec, warnings []string, err error) {
	text, err := stripComments(data)
	if err != nil {
		return nil, nil, fault.Wrap(fault.Config, err, "read servers")
	}
	servers, ok := serversOf(text)
	if !ok {
		return nil, nil, fault.New(fault.Config, "read servers: no object mcpServers or servers").
			WithHint(`write {"mcpServers": {"name": {"command": "…"}}} or {"mcpServers": {"name": {"url": "…"}}}`)
	}
	rawjson.Each(servers, func(key string, entry json.RawMessage) bool {
		e := entryReader{raw: entry}
		e.expander = expander{getenv: getenv, warn: func(format string, args ...any) {
			warnings = append(warnings, fmt.Sprintf("server %q: "+format, append([]any{key}, args...)...))
		}}
		spec, on := e.spec(key)
		if !on {
			return true
		}
		if slices.ContainsFunc(specs, func(s Spec) bool { return s.Name == spec.Name }) {
			e.warn("another server has the name %s too, this one is ignored", spec.Name)
			return true
		}
		if err := spec.Validate(); err != nil { // not an error: the file belongs to another program
			e.warn("it is ignored: %v", err)
			return true
		}
		specs = append(specs, spec)
		return true
	})
	return specs, warnings, nil
}

func serversOf(text json.RawMessage) (json.RawMessage, bool) {
	for _, key := range []string{"mcpServers", "servers"} {
		if servers, ok := rawjson.Get(text, key); ok && rawjson.IsObject(servers) {
			return servers, true
		}
	}
	if inner, ok := rawjson.Get(text, "mcp"); ok {
		return serversOf(inner)
	}
	return nil, false
}

// entryReader reads one server's entry.
type entryReader struct {
	expander
	raw json.RawMessage
}

// spec reads the entry; on is false if it is disabled.
func (e entryReader) spec(key string) (spec Spec, on bool) {
	enabled, given := rawjson.Get(e.raw, "enabled")
	if rawjson.GetBool(e.raw, "disabled") || given && string(enabled) == "false" {
		return Spec{}, false
	}
	spec = Spec{
		Name:          e.name(key),
		URL:           e.text("url", "serverUrl", "httpUrl"),
		Command:       e.text("command"),
		Args:          e.list("args"),
		Env:           e.table("env"),
		EnvFile:       e.text("envFile"),
		Cwd:           e.text("cwd"),
		Transport:     e.transport(),
		Protocol:      e.text("protocol"),
		Headers:       e.table("headers"),
		BearerEnv:     e.text("bearerEnv", "bearer_env"),
		Timeout:       e.duration("timeout"),
		Start:         e.text("start"),
		Idle:          e.duration("idle"),
		AllowedTools:  e.list("allowedTools", "includeTools"),
		DisabledTools: e.list("disabledTools", "excludeTools"),
		ReadOnly:      rawjson.GetBool(e.raw, "readOnly"),
		OAuth:         e.oauth(),
	}
	if spec.Command != "" && spec.URL != "" {
		e.warn("has both command and url, the url is ignored")
		spec.URL = ""
	}
	for _, unsupported := range []string{"auth", "inputs"} {
		if _, there := rawjson.Get(e.raw, unsupported); there {
			e.warn("%s is not supported here", unsupported)
		}
	}
	return spec, true
}

// oauth reads the configuration of logins.
func (e entryReader) oauth() OAuth {
	_, raw := e.find("oauth")
	if raw == nil {
		return OAuth{}
	}
	e.raw, e.secret = raw, true
	o := OAuth{ClientID: e.text("clientId", "client_id"), ClientSecret: e.text("clientSecret", "client_secret"), Issuer: e.text("issuer")}
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

// name is the namespace: the one in the file, or the key with invalid characters
// replaced.
func (e entryReader) name(key string) string {
	if name := e.text("namespace"); name != "" {
		return name
	}
	name := strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, key)
	if name == "" || !validName().MatchString(name[:1]) {
		name = "s" + name
	}
	if name = name[:min(len(name), 64)]; name != key {
		e.warn("its tools are in namespace %s", name)
	}
	return name
}

func (e entryReader) transport() string {
	switch kind := strings.ToLower(e.text("type", "transport")); kind {
	case "http", "streamable-http", "streamablehttp", "streamable_http":
		return HTTP
	case "sse", "stdio":
		return kind
	case "", Auto:
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
	return e.expand(text)
}

// scalar reads a string, or a number or boolean as text, which users write instead
// of strings.
func (e entryReader) scalar(key string, raw json.RawMessage) (string, bool) {
	if text, ok := rawjson.Text(raw); ok {
		return e.expand(text), true
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
	var list []string
	for _, item := range items {
		if text, ok := e.scalar(key, item); ok {
			list = append(list, text)
		}
	}
	return list
}

func (e entryReader) table(key string) map[string]string {
	_, raw := e.find(key)
	if raw == nil {
		return nil
	}
	if !rawjson.IsObject(raw) {
		e.warn("%s is not an object", key)
		return nil
	}
	e.secret = true
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
func (e entryReader) duration(key string) time.Duration {
	_, raw := e.find(key)
	if raw == nil {
		return 0
	}
	if n, ok := rawjson.Number(raw); ok && n > 0 && n < 1e10 {
		if n >= 1000 {
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
