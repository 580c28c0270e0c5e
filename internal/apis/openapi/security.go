package openapi

import (
	"encoding/json"
	"net/url"
	"strings"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/rawjson"
)

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
