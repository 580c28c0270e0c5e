package openapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/apis/httpcall"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
)

// answer is the answer of a service to a call.
type answer struct {
	op     *operation
	query  url.Values // of the request
	env    api.Environment
	client *httpcall.Client
	*http.Response
}

// result makes the result of tools/call.
func (a answer) result(ctx context.Context) (json.RawMessage, error) {
	defer a.Body.Close()
	if a.StatusCode < 300 && a.isFile() {
		return a.fileResult(ctx)
	}
	text, err := a.client.Read(a.Response)
	if err != nil {
		return nil, err
	}
	switch {
	case a.StatusCode >= 400:
		return a.client.Failure(a.Response, text), nil
	case a.StatusCode >= 300:
		return a.redirected(), nil
	}
	if body := httpcall.Compact(text); body != nil {
		return a.jsonResult(body), nil
	}
	if !utf8.Valid(text) {
		a.Body = io.NopCloser(bytes.NewReader(text))
		return a.fileResult(ctx)
	}
	return a.textResult(string(text)), nil
}

// isFile reports whether the answer is neither JSON nor text.
func (a answer) isFile() bool {
	if strings.HasPrefix(a.Header.Get("Content-Disposition"), "attachment") {
		return true
	}
	media := mediaType(a.Header.Get("Content-Type"))
	for _, text := range []string{"json", "text/", "xml", "yaml", "javascript", "x-www-form-urlencoded", "x-ndjson", "graphql"} {
		if strings.Contains(media, text) {
			return false
		}
	}
	return media != ""
}

// jsonResult is the result of an answer in JSON. Structured content must be an object.
func (a answer) jsonResult(body json.RawMessage) json.RawMessage {
	next := a.op.nextPage(a.query, a.Header, body)
	structured := api.Object(body)
	text := string(body)
	if next = a.withoutCredentials(next); next != "" {
		structured = rawjson.SetText(structured, api.NextPageToken, next)
		text = string(structured)
	}
	if a.StatusCode == http.StatusAccepted {
		text = "The service has accepted the request and works on it." + a.location() + "\n" + text
	}
	return api.Result(text, structured)
}

// withoutCredentials removes the configured credentials from a query that the service
// made.
func (a answer) withoutCredentials(query string) string {
	values, err := url.ParseQuery(query)
	if err != nil {
		return ""
	}
	for name := range a.env.Settings.Query {
		values.Del(name)
	}
	return values.Encode()
}

// textResult is the result of an answer without JSON.
func (a answer) textResult(text string) json.RawMessage {
	structured := rawjson.Set(nil, "status", json.RawMessage(strconv.Itoa(a.StatusCode)))
	switch {
	case a.StatusCode == http.StatusAccepted:
		text = strings.TrimSpace("The service has accepted the request and works on it." + a.location() + "\n" + text)
	case text == "":
		text = "Done (" + a.Status + ")." + a.location()
	default:
		structured = rawjson.SetText(structured, "text", text)
	}
	if to := a.Header.Get("Location"); to != "" {
		structured = rawjson.SetText(structured, "location", to)
	}
	return api.Result(text, structured)
}

func (a answer) location() string {
	if to := a.Header.Get("Location"); to != "" {
		return " Location: " + to
	}
	return ""
}

// redirected is the result of a redirect to another host, which is not followed: our
// credentials are not for it.
func (a answer) redirected() json.RawMessage {
	to := a.Header.Get("Location")
	structured := rawjson.Set(nil, "status", json.RawMessage(strconv.Itoa(a.StatusCode)))
	structured = rawjson.SetText(structured, "location", to)
	return api.Result("The answer is at "+to, structured)
}

// maxFile is the largest file that is stored.
const maxFile = 512 << 20

// fileResult stores the answer and links to it.
func (a answer) fileResult(ctx context.Context) (json.RawMessage, error) {
	if a.env.Files == nil {
		return nil, fault.New(fault.Unavailable, "the answer is a file, and files cannot be stored here").WithHint("call the tool on a server")
	}
	media := mediaType(a.Header.Get("Content-Type"))
	limited := &io.LimitedReader{R: a.Body, N: maxFile + 1}
	stored, err := a.env.Files.PutFile(ctx, limited, media)
	switch {
	case err != nil:
		return nil, fault.Wrap(fault.Unavailable, err, "store the answer")
	case limited.N <= 0:
		return nil, fault.New(fault.Limit, "the answer has more than %d bytes", maxFile)
	}
	uri := stored.Hash.URI()
	link := rawjson.SetText(rawjson.SetText(json.RawMessage(`{"type":"resource_link"}`), "uri", uri), "name", fileName(a.Header, a.op))
	link = rawjson.SetText(link, "mimeType", stored.MIME)
	link = rawjson.Set(link, "size", json.RawMessage(strconv.FormatInt(stored.Size, 10)))
	structured := rawjson.SetText(rawjson.SetText(nil, "file", uri), "mime_type", stored.MIME)
	structured = rawjson.Set(structured, "size", json.RawMessage(strconv.FormatInt(stored.Size, 10)))
	text := "The answer is a file of " + strconv.FormatInt(stored.Size, 10) + " bytes (" + stored.MIME + "), stored as " + uri
	blocks := rawjson.AppendText([]byte(`[{"type":"text","text":`), text)
	blocks = append(append(append(blocks, `},`...), link...), ']')
	return rawjson.Set(rawjson.Set(nil, "content", blocks), "structuredContent", structured), nil
}

// fileName is the name that the service gives a file, else that of the operation.
func fileName(header http.Header, op *operation) string {
	_, rest, ok := strings.Cut(header.Get("Content-Disposition"), "filename=")
	name, _, _ := strings.Cut(strings.Trim(rest, `"`), `"`)
	if ok && name != "" {
		return name
	}
	return op.name
}

// Parameters by which services continue a list.
var (
	cursorNames = []string{"page_token", "pageToken", "cursor", "next_token", "nextToken", "next_cursor", "starting_after", "after", "continue", "marker", "start_cursor"}
	pageNames   = []string{"page", "_page", "page_number", "pageNumber", "p"}
	offsetNames = []string{"offset", "skip", "start", "startAt", "_start"}
	sizeNames   = []string{"per_page", "perPage", "page_size", "pageSize", "limit", "_limit", "_per_page", "max_results", "maxResults", "count", "size", "take"}
)

// pageParameter is a query parameter or a member of the body that says which part of a
// list is wanted.
type pageParameter struct {
	name     string
	fallback string // its value if it is not given
	isNumber bool
}

// findPaging adds the argument that continues a list to operations that list.
func (op *operation) findPaging(r *reader) {
	linked := false
	switch {
	case op.method == http.MethodGet:
		for _, p := range op.params {
			if p.in == "query" {
				op.addPageParameter(pageParameter{name: p.name, fallback: p.fallback})
			}
		}
		linked = r.declaresLink(op)
	case op.body != nil && r.answersList(op):
		op.pagesBody = true
		r.eachProperty(op.body.schemas[0], map[*byte]bool{}, op.addBodyParameter)
	}
	taken := slices.ContainsFunc(op.params, func(p *parameter) bool { return p.argument == api.PageToken })
	if !taken && (len(op.pageNames) > 0 || linked) {
		op.extra = append(op.extra, argument{api.PageToken, api.PageSchema})
	}
}

// addPageParameter notes a parameter if it is about the part of a list.
func (op *operation) addPageParameter(p pageParameter) {
	switch {
	case slices.Contains(slices.Concat(cursorNames, pageNames, offsetNames), p.name):
		op.pageNames = append(op.pageNames, p.name)
	case !slices.Contains(sizeNames, p.name):
		return
	}
	op.pageParams = append(op.pageParams, p)
}

// addBodyParameter is addPageParameter for a property of the body.
func (op *operation) addBodyParameter(name string, schema node) {
	fallback, _ := rawjson.Get(schema.raw, "default")
	kind, _ := rawjson.Get(schema.raw, "type")
	isNumber := strings.Contains(string(kind), `"integer"`) || strings.Contains(string(kind), `"number"`)
	op.addPageParameter(pageParameter{name: name, fallback: scalar(fallback), isNumber: isNumber})
}

// answersList reports whether the document says that the operation answers with a list, or
// with an object that has one.
func (r *reader) answersList(op *operation) (found bool) {
	for _, n := range r.results(op) {
		found = found || r.docs.kind(n, kindDepth) == "array"
		r.eachProperty(n, map[*byte]bool{}, func(name string, schema node) {
			found = found || slices.Contains(listNames, name) && r.docs.kind(schema, kindDepth) == "array"
		})
	}
	return found
}

// eachProperty calls do with the properties of an object's schema and its parts. Seen are
// the schemas that were read, since parts may refer to the whole.
func (r *reader) eachProperty(n node, seen map[*byte]bool, do func(name string, schema node)) {
	n, err := r.docs.follow(n)
	if err != nil || len(n.raw) == 0 || seen[&n.raw[0]] {
		return
	}
	seen[&n.raw[0]] = true
	properties, _ := rawjson.Get(n.raw, "properties")
	rawjson.Each(properties, func(name string, raw json.RawMessage) bool {
		if property, err := r.docs.follow(node{n.doc, raw}); err == nil {
			do(name, property)
		}
		return true
	})
	parts, _ := rawjson.Get(n.raw, "allOf")
	items, _ := rawjson.Items(parts)
	for _, item := range items {
		r.eachProperty(node{n.doc, item}, seen, do)
	}
}

// declaresLink reports whether the document says that answers have a Link header.
func (r *reader) declaresLink(op *operation) (found bool) {
	responses, _ := rawjson.Get(op.raw.raw, "responses")
	rawjson.Each(responses, func(_ string, raw json.RawMessage) bool {
		if n, err := r.docs.follow(node{op.raw.doc, raw}); err == nil {
			headers, _ := rawjson.Get(n.raw, "headers")
			_, found = rawjson.Get(headers, "Link")
		}
		return !found
	})
	return found
}

// nextPage is the parameters of the next page of an answer, as a query; "" if there is
// none. query is the parameters of the request.
func (op *operation) nextPage(query url.Values, header http.Header, body json.RawMessage) string {
	if links := header.Values("Link"); len(links) > 0 && op.method == http.MethodGet {
		return linkedQuery(links)
	}
	if len(op.pageNames) == 0 {
		return ""
	}
	items, isList := listOf(body)
	if next, said := op.cursor(body, items); said {
		return next
	}
	if !isList || len(items) == 0 {
		return ""
	}
	return op.counted(query, len(items))
}

// linkedQuery is the query of the link to the next page.
func linkedQuery(links []string) string {
	for _, link := range strings.Split(strings.Join(links, ","), ",") {
		address, params, _ := strings.Cut(link, ";")
		address = strings.Trim(strings.TrimSpace(address), "<>")
		relation := strings.ReplaceAll(strings.ToLower(params), `"`, "")
		if !strings.Contains(strings.ReplaceAll(relation, " ", "")+";", "rel=next;") {
			continue
		}
		if u, err := url.Parse(address); err == nil {
			return u.RawQuery
		}
	}
	return ""
}

// cursorPaths are where answers say how they go on.
var cursorPaths = []string{
	"next_page_token", "nextPageToken", "next_cursor", "nextCursor", "next_token", "nextToken", "next_page", "nextPage", "next",
	"metadata/continue", "response_metadata/next_cursor", "meta/next_cursor", "meta/next", "pagination/next_cursor", "pagination/next",
	"paging/next/after", "paging/next", "links/next", "_links/next/href", "@odata.nextLink", "cursor",
}

// cursor is the query of the next page as the body says it. It also says that there is no
// next page.
func (op *operation) cursor(body json.RawMessage, items []json.RawMessage) (query string, said bool) {
	if !rawjson.IsObject(body) {
		return "", false
	}
	for _, path := range cursorPaths {
		value, ok := rawjson.Path(body, path)
		if !ok || rawjson.IsObject(value) {
			continue
		}
		if query := op.cursorQuery(path, scalar(value)); query != "" {
			return query, true
		}
		said = true
	}
	more, _ := rawjson.Get(body, "has_more")
	if string(more) == "true" && len(items) > 0 && slices.Contains(op.pageNames, "starting_after") {
		id, _ := rawjson.GetText(items[len(items)-1], "id")
		return url.Values{"starting_after": {id}}.Encode(), true
	}
	return "", said || string(more) == "false"
}

// cursorQuery is the query for a cursor that was found at a path of the body: an address,
// or the value of a parameter.
func (op *operation) cursorQuery(path, cursor string) string {
	_, query, isAddress := strings.Cut(cursor, "?")
	switch {
	case isAddress && (cursor[0] == '/' || strings.Contains(cursor, "://")):
		return query
	case cursor == "" || cursor == "false":
		return ""
	}
	return url.Values{op.parameterFor(path): {cursor}}.Encode()
}

// parameterFor is the parameter for a cursor that was found at a path of the body.
func (op *operation) parameterFor(path string) string {
	if path == "next_page" || path == "nextPage" {
		for _, name := range op.pageNames {
			if slices.Contains(pageNames, name) {
				return name
			}
		}
	}
	for _, name := range op.pageNames {
		if slices.Contains(cursorNames, name) && name != "starting_after" {
			return name
		}
	}
	return op.pageNames[0]
}

// counted is the query of the next page of a service that only counts pages or items.
func (op *operation) counted(query url.Values, items int) string {
	size := op.number(query, sizeNames)
	if size <= 0 || items < size {
		return ""
	}
	for _, name := range op.pageNames {
		switch {
		case slices.Contains(pageNames, name):
			return url.Values{name: {strconv.Itoa(max(op.number(query, []string{name}), 1) + 1)}}.Encode()
		case slices.Contains(offsetNames, name):
			return url.Values{name: {strconv.Itoa(op.number(query, []string{name}) + items)}}.Encode()
		}
	}
	return ""
}

// number is the value of the first of these parameters that the operation has: that of the
// request, else the default of the document, else 0.
func (op *operation) number(query url.Values, names []string) int {
	for _, p := range op.pageParams {
		if !slices.Contains(names, p.name) {
			continue
		}
		text := query.Get(p.name)
		text = cmp.Or(text, p.fallback)
		n, _ := strconv.Atoi(text) // what is no number is not counted
		return n
	}
	return 0
}

// listNames are the members of an object in which services answer lists.
var listNames = []string{"items", "data", "results", "values", "records", "entries", "rows", "objects", "list", "value"}

// listOf is the list that an answer is, or has.
func listOf(body json.RawMessage) ([]json.RawMessage, bool) {
	if items, ok := rawjson.Items(body); ok {
		return items, true
	}
	for _, name := range listNames {
		raw, _ := rawjson.Get(body, name)
		if items, ok := rawjson.Items(raw); ok {
			return items, true
		}
	}
	var only []json.RawMessage
	count := 0
	rawjson.Each(body, func(_ string, raw json.RawMessage) bool {
		if items, ok := rawjson.Items(raw); ok {
			only = items
			count++
		}
		return true
	})
	return only, count == 1
}
