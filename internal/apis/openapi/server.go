package openapi

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
)

// baseURL is the URL of the service: the configured one, else the first server of the
// document.
func (r *reader) baseURL(settings api.Settings) (string, error) {
	if settings.BaseURL != "" {
		return strings.TrimSuffix(settings.BaseURL, "/"), nil
	}
	base, err := r.swaggerURL(), error(nil)
	if !r.swagger {
		base, err = r.firstServer(r.root, settings.Variables)
	}
	if err != nil {
		return "", fault.Wrap(fault.Config, err, "server of the API").WithHint("set base_url, or the variables of the document's server")
	}
	if u, err := url.Parse(base); err != nil || u.Host == "" {
		return "", fault.New(fault.Config, "the document does not say where the API is").WithHint("set base_url, for example \"https://api.example.org/v1\"")
	}
	return base, nil
}

// serverOf is the URL of an operation that has servers of its own; "" for that of the
// document.
func (r *reader) serverOf(op *operation) string {
	if r.fixedBase {
		return ""
	}
	for _, place := range []node{op.raw, op.item} {
		if base, err := r.firstServer(place, r.variables); err == nil && base != "" {
			return base
		}
	}
	return ""
}

// firstServer is the URL of the first server that a node lists, with its variables
// replaced; "" if it lists none.
func (r *reader) firstServer(n node, variables map[string]string) (string, error) {
	raw, _ := rawjson.Get(n.raw, "servers")
	servers, _ := rawjson.Items(raw)
	if len(servers) == 0 {
		return "", nil
	}
	text, _ := rawjson.GetText(servers[0], "url")
	declared, _ := rawjson.Get(servers[0], "variables")
	for _, name := range placeholders(text) {
		variable, _ := rawjson.Get(declared, name)
		value, err := variableValue(name, variable, variables)
		if err != nil {
			return "", err
		}
		text = strings.ReplaceAll(text, "{"+name+"}", value)
	}
	return absolute(n.doc.location, text), nil
}

// variableValue is the configured or the default value of a server's variable.
func variableValue(name string, variable json.RawMessage, configured map[string]string) (string, error) {
	value, ok := configured[name]
	if !ok {
		if value, ok = rawjson.GetText(variable, "default"); !ok {
			return "", fmt.Errorf("its variable %s has no value", name)
		}
	}
	if allowed := textsOf(node{nil, variable}, "enum"); len(allowed) > 0 && !slices.Contains(allowed, value) {
		return "", fmt.Errorf("its variable %s cannot be %q, only %s", name, value, strings.Join(allowed, ", "))
	}
	return value, nil
}

// absolute resolves a server's URL, which may be relative to the document's.
func absolute(location, text string) string {
	if api.IsURL(location) && !api.IsURL(text) {
		if base, err := url.Parse(location); err == nil {
			if to, err := base.Parse(text); err == nil {
				to.RawQuery, to.Fragment = "", ""
				text = to.String()
			}
		}
	}
	return strings.TrimSuffix(text, "/")
}

// swaggerURL is the URL of a service with a Swagger document. Its host is that of the
// document if it names none.
func (r *reader) swaggerURL() string {
	host, _ := rawjson.GetText(r.root.raw, "host")
	path, _ := rawjson.GetText(r.root.raw, "basePath")
	if host == "" {
		return absolute(r.root.doc.location, path)
	}
	scheme := "https"
	if schemes := textsOf(r.root, "schemes"); len(schemes) > 0 && !slices.Contains(schemes, scheme) {
		scheme = schemes[0]
	}
	return strings.TrimSuffix(scheme+"://"+host+path, "/")
}

// eachScheme calls do with the document's security schemes of a type.
func (r *reader) eachScheme(kind string, do func(scheme json.RawMessage)) {
	schemes, _ := r.docs.member(r.root, "securityDefinitions")
	if components, ok := r.docs.member(r.root, "components"); ok {
		schemes, _ = r.docs.member(components, "securitySchemes")
	}
	rawjson.Each(schemes.raw, func(_ string, raw json.RawMessage) bool {
		scheme, err := r.docs.follow(node{schemes.doc, raw})
		if found, _ := rawjson.GetText(scheme.raw, "type"); err == nil && found == kind {
			do(scheme.raw)
		}
		return true
	})
}

// tokenURL is where the document says that client credentials get a token: the first
// address of several; "" if it does not say it. It may be relative to the service.
func (r *reader) tokenURL(base string) (found string) {
	r.eachScheme("oauth2", func(scheme json.RawMessage) {
		text, _ := rawjson.Path(scheme, "flows/clientCredentials/tokenUrl")
		if flow, _ := rawjson.GetText(scheme, "flow"); flow == "application" { // Swagger
			text, _ = rawjson.Get(scheme, "tokenUrl")
		}
		if found == "" {
			found = scalar(text)
		}
	})
	service, err := url.Parse(base + "/")
	if found == "" || err != nil {
		return ""
	}
	to, err := service.Parse(found)
	if err != nil {
		return ""
	}
	return to.String()
}

// hideCredentials makes the parameters hidden that carry credentials: those of the
// document's security schemes and the configured ones.
func (r *reader) hideCredentials(env api.Environment) {
	r.hidden = map[string]bool{}
	r.eachScheme("apiKey", func(scheme json.RawMessage) {
		in, _ := rawjson.GetText(scheme, "in")
		name, _ := rawjson.GetText(scheme, "name")
		r.hidden[in+" "+strings.ToLower(name)] = true
	})
	for in, table := range map[string]map[string]string{"query": env.Settings.Query, "cookie": env.Settings.Cookies} {
		for name := range table {
			r.hidden[in+" "+strings.ToLower(name)] = true
		}
	}
	for name := range env.Header {
		r.hidden["header "+strings.ToLower(name)] = true
	}
	if name := env.Settings.IdempotencyHeader; name != "" {
		r.hidden["header "+strings.ToLower(name)] = true
	}
}
