package openapi

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
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
