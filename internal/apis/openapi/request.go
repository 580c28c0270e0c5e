package openapi

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/apis/httpcall"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
)

// requestBuilder makes the request of a call.
type requestBuilder struct {
	op     *operation
	args   map[string]json.RawMessage
	path   string
	query  []pair
	header http.Header
}

// newBuilder reads the arguments of a call.
func newBuilder(op *operation, arguments json.RawMessage) *requestBuilder {
	b := &requestBuilder{op: op, args: map[string]json.RawMessage{}, path: op.path, header: http.Header{}}
	rawjson.Each(arguments, func(name string, value json.RawMessage) bool {
		b.args[name] = value
		return true
	})
	return b
}

// request makes the request without its body.
func (b *requestBuilder) request(base string) (r httpcall.Request, err error) {
	for _, p := range b.op.params {
		value, given := b.args[p.argument]
		if given && rawjson.IsNull(value) && p.in != "path" {
			continue
		}
		if !given {
			if p.required {
				return r, fault.New(fault.InvalidParams, "the argument %s is missing", p.argument)
			}
			continue
		}
		if err := b.add(p, value); err != nil {
			return r, err
		}
	}
	b.continueList()
	path, _, _ := strings.Cut(b.path, "#")
	u, err := url.Parse(base + path)
	if err != nil {
		return r, fault.New(fault.InvalidParams, "the path %s cannot be requested", b.op.path)
	}
	if query := encodePairs(b.query); query != "" {
		u.RawQuery = strings.TrimPrefix(u.RawQuery+"&"+query, "&")
	}
	b.header.Set("Accept", "application/json, */*;q=0.5")
	return httpcall.Request{Method: b.op.method, URL: u, Header: b.header, Template: b.op.path, Repeatable: repeatable(b.op.method)}, nil
}

// repeatable reports whether HTTP defines that a request may be sent twice.
func repeatable(method string) bool {
	return slices.Contains([]string{"GET", "HEAD", "OPTIONS", "TRACE", "QUERY", "PUT", "DELETE"}, method)
}

// add writes one parameter.
func (b *requestBuilder) add(p *parameter, value json.RawMessage) error {
	if p.content != "" {
		text := string(value)
		if !isJSON(p.content) {
			text = scalar(value)
		}
		value = rawjson.AppendText(nil, text)
	}
	switch p.in {
	case "path":
		text := p.style.inPath(p.name, value)
		if isUnsafe(text) {
			return fault.New(fault.InvalidParams, "the argument %s cannot be %q in a path", p.argument, scalar(value))
		}
		b.path = strings.ReplaceAll(b.path, "{"+p.name+"}", text)
	case "query":
		b.query = append(b.query, p.style.pairs(p.name, value)...)
	case "querystring":
		b.query = append(b.query, style{name: "form", explode: true}.pairs(p.name, value)...)
	case "header":
		b.header.Set(p.name, p.style.inHeader(value))
	case "cookie":
		cookie := http.Cookie{Name: p.name, Value: p.style.inHeader(value)}
		b.header.Add("Cookie", cookie.String())
	}
	return nil
}

// isUnsafe reports whether a part of a path would lead to another path.
func isUnsafe(text string) bool {
	return text == "" || slices.ContainsFunc(strings.Split(text, "/"), func(part string) bool {
		decoded, err := url.PathUnescape(part)
		return err != nil || decoded == "." || decoded == ".." || part == "" && strings.Contains(text, "//")
	})
}

// continueList replaces the parameters that the page token has.
func (b *requestBuilder) continueList() {
	token, ok := rawjson.Text(b.args[api.PageToken])
	if !ok || token == "" || slices.ContainsFunc(b.op.params, func(p *parameter) bool { return p.argument == api.PageToken }) {
		return
	}
	values, err := url.ParseQuery(token)
	if err != nil {
		return
	}
	if b.op.pagesBody {
		b.continueBody(values)
		return
	}
	b.query = slices.DeleteFunc(b.query, func(p pair) bool { return values.Has(p.name) })
	for _, part := range strings.Split(token, "&") { // in its order
		name, value, _ := strings.Cut(part, "=")
		name, _ = url.QueryUnescape(name) // ParseQuery has accepted them
		value, _ = url.QueryUnescape(value)
		b.query = append(b.query, pair{name: name, value: value})
	}
}

// continueBody replaces the members of the body that the page token has, and that the
// operation continues its list by: the service made the token, and sets nothing else.
func (b *requestBuilder) continueBody(values url.Values) {
	body := b.args[argBody]
	for _, p := range b.op.pageParams {
		text := values.Get(p.name)
		if _, err := strconv.ParseFloat(text, 64); p.isNumber && err == nil {
			body = rawjson.Set(body, p.name, json.RawMessage(text))
		} else if text != "" {
			body = rawjson.SetText(body, p.name, text)
		}
	}
	b.args[argBody] = body
}

// pageQuery is the parameters of the request that say which part of a list is wanted.
func (b *requestBuilder) pageQuery(u *url.URL) url.Values {
	if !b.op.pagesBody {
		return u.Query()
	}
	values := url.Values{}
	for _, p := range b.op.pageParams {
		if value, ok := rawjson.Get(b.args[argBody], p.name); ok {
			values.Set(p.name, scalar(value))
		}
	}
	return values
}
