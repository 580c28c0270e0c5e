package graphql

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/apis/httpcall"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
)

// answer is what a service answered.
type answer struct {
	data    json.RawMessage   // an object
	errors  []json.RawMessage // about fields that are missing in it
	failure json.RawMessage   // the result of a call that has no data; else nil
}

// send sends a request. Queries may be repeated, mutations only if the service recognizes
// them.
func (a *API) send(ctx context.Context, kind ast.Operation, r request, call api.Call) (answer, error) {
	body := r.body()
	sent := httpcall.Request{
		Method: http.MethodPost, URL: a.url, Template: a.url.EscapedPath(), Repeatable: kind == ast.Query,
		Header: http.Header{"Content-Type": {"application/json"}, "Accept": {"application/graphql-response+json, application/json;q=0.9"}},
		Body: func() (io.ReadCloser, int64, error) {
			return io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
		},
		Progress: func(message string) { call.Progress(0, 0, message) },
	}
	a.client.Identify(&sent)
	response, err := a.client.Do(ctx, sent)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	text, err := a.client.Read(response)
	if err != nil {
		return answer{}, err
	}
	return a.read(response, text)
}

// read reads an answer: data, errors, or both.
func (a *API) read(response *http.Response, text []byte) (found answer, err error) {
	body := httpcall.Compact(text)
	data, hasData := rawjson.Get(body, "data")
	raw, hasErrors := rawjson.Get(body, "errors")
	if hasErrors {
		found.errors, _ = rawjson.Items(raw)
	}
	switch {
	case !hasData && len(found.errors) == 0 && response.StatusCode >= 300:
		found.failure = a.client.Failure(response, text)
	case !hasData && len(found.errors) == 0:
		return found, fault.New(fault.Upstream, "%s did not answer as a GraphQL service: neither data nor errors", a.url.Host).
			WithHint("check the url")
	case !rawjson.IsObject(data):
		found.failure = a.failure(found.errors, response.StatusCode)
	default:
		found.data = data
	}
	return found, nil
}

// failure is the result of a call whose errors left no data.
func (a *API) failure(list []json.RawMessage, status int) json.RawMessage {
	text := explain(list)
	if status == http.StatusUnauthorized || strings.Contains(text, "UNAUTHENTICATED") {
		text += "\n" + a.env.RefusedCredentials()
	}
	return api.Failure(text, rawjson.Set(nil, "errors", shown(list)))
}

// Limits of the errors that are shown.
const (
	maxErrors    = 10
	maxErrorText = 4 << 10
)

// shown are the errors that are shown, as a list.
func shown(list []json.RawMessage) json.RawMessage {
	out := []byte{'['}
	for i, problem := range list[:min(len(list), maxErrors)] {
		if len(problem) > maxErrorText {
			message, _ := rawjson.GetText(problem, "message")
			problem = rawjson.SetText(nil, "message", message[:min(len(message), maxErrorText)])
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, problem...)
	}
	return append(out, ']')
}

// explain is the errors as text: message, place in the answer and code.
func explain(list []json.RawMessage) string {
	lines := make([]string, 0, len(list))
	for _, problem := range list[:min(len(list), maxErrors)] {
		line, _ := rawjson.GetText(problem, "message")
		line = strings.ToValidUTF8(line[:min(len(line), maxErrorText)], "")
		if place, ok := rawjson.Get(problem, "path"); ok && !rawjson.IsNull(place) {
			items, _ := rawjson.Items(place)
			names := make([]string, len(items))
			for i, item := range items {
				names[i] = strings.Trim(string(item), `"`)
			}
			line += " (at " + strings.Join(names, ".") + ")"
		}
		for _, path := range []string{"extensions/code", "type"} {
			value, _ := rawjson.Path(problem, path)
			if code, ok := rawjson.Text(value); ok {
				line += " [" + code + "]"
				break
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// partialErrors is the member of results with the errors of fields that are missing.
const partialErrors = "graphql_errors"

// result is the result with a value of the data, and with the errors of what is missing.
func (w answer) result(value json.RawMessage) json.RawMessage {
	structured := api.Object(value)
	text := string(value)
	if _, paged := rawjson.Get(structured, api.NextPageToken); paged {
		text = string(structured)
	}
	if len(w.errors) > 0 {
		structured = rawjson.Set(structured, partialErrors, shown(w.errors))
		text = "A part of the answer is missing: " + explain(w.errors) + "\n" + text
	}
	return api.Result(text, structured)
}

// callField calls the tool of a query or mutation.
func (a *API) callField(ctx context.Context, s *service, op *operation, call api.Call) (json.RawMessage, error) {
	r, err := s.request(op, call.Arguments)
	if err != nil {
		return nil, err
	}
	answer, err := a.send(ctx, op.kind, r, call)
	if err != nil || answer.failure != nil {
		return answer.failure, err
	}
	value, _ := rawjson.Get(answer.data, op.field.Name)
	switch {
	case len(answer.errors) > 0 && rawjson.IsNull(value):
		return a.failure(answer.errors, http.StatusOK), nil
	case value == nil:
		value = json.RawMessage("null")
	case op.paged && rawjson.IsObject(value):
		value = withNextPage(value)
	}
	return answer.result(value), nil
}

// withNextPage adds the token of the next page to a list that has one.
func withNextPage(list json.RawMessage) json.RawMessage {
	info, _ := rawjson.Get(list, "pageInfo")
	cursor, ok := rawjson.GetText(info, "endCursor")
	if !ok || cursor == "" || !rawjson.GetBool(info, "hasNextPage") {
		return list
	}
	return rawjson.SetText(list, api.NextPageToken, cursor)
}
