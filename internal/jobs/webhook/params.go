package webhook

import (
	"encoding/json"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
)

// params returns the params of the job: the members of the body, and the headers that
// the hook names. A body that has no members is the param body.
func (h *Hook) params(header http.Header, body []byte) (json.RawMessage, error) {
	params, err := bodyParams(header.Get("Content-Type"), body)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(h.Headers)) {
		if value := header.Get(h.Headers[name]); value != "" {
			params = rawjson.SetText(params, name, value)
		}
	}
	return params, nil
}

func bodyParams(contentType string, body []byte) (json.RawMessage, error) {
	kind, _, _ := mime.ParseMediaType(contentType)
	switch {
	case len(body) == 0:
		return json.RawMessage("{}"), nil
	case kind == "application/x-www-form-urlencoded":
		return formParams(body)
	case rawjson.Valid(body) == nil && rawjson.IsObject(body):
		return body, nil
	case rawjson.Valid(body) == nil:
		return rawjson.Set(nil, "body", body), nil
	case kind == "application/json":
		return nil, fault.New(fault.InvalidParams, "the body is not JSON, which its Content-Type says")
	}
	return rawjson.SetText(nil, "body", string(body)), nil
}

// formParams returns the fields of a form. A field that is given several times is a list;
// the field payload, in which some services send JSON, has its members as params.
func formParams(body []byte) (json.RawMessage, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, fault.New(fault.InvalidParams, "the body is not a form, which its Content-Type says")
	}
	if payload := []byte(form.Get("payload")); len(form) == 1 && rawjson.Valid(payload) == nil && rawjson.IsObject(payload) {
		return payload, nil
	}
	fields := map[string]any{}
	for name, values := range form {
		if fields[name] = values; len(values) == 1 {
			fields[name] = values[0]
		}
	}
	return json.Marshal(fields)
}
