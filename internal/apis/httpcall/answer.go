package httpcall

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
)

// Read reads the body of an answer, without the configured credentials. Its caller closes
// the body.
func (c *Client) Read(answer *http.Response) ([]byte, error) {
	limit := c.env.MaxAnswer
	text, err := io.ReadAll(io.LimitReader(answer.Body, int64(limit)+1))
	switch {
	case err != nil:
		return nil, fault.Wrap(fault.Unavailable, err, "read the answer of %s", answer.Request.URL.Host).
			WithHint("the call was made, but its answer is not complete")
	case len(text) > limit:
		return nil, fault.New(fault.Limit, "the answer has more than %d bytes", limit).WithHint("ask for less, for example for a page")
	}
	return c.credentials.Hide(text), nil
}

// Compact returns JSON without blanks; nil if a text is not JSON.
func Compact(text []byte) json.RawMessage {
	switch rawjson.First(text) {
	case '{', '[', '"', 't', 'f', 'n', '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
	default:
		return nil
	}
	var out bytes.Buffer
	if json.Compact(&out, text) != nil {
		return nil
	}
	return out.Bytes()
}

// maxErrorText is how much of an error's body is shown.
const maxErrorText = 4 << 10

// Failure is the result of an answer that reports an error.
func (c *Client) Failure(answer *http.Response, text []byte) json.RawMessage {
	structured := rawjson.Set(nil, "status", json.RawMessage(strconv.Itoa(answer.StatusCode)))
	said := strings.TrimSpace(strings.ToValidUTF8(string(text[:min(len(text), maxErrorText)]), ""))
	body := Compact(text)
	if body != nil && len(body) <= maxErrorText {
		structured = rawjson.Set(structured, "error", body)
		said = explain(body)
	} else if said != "" {
		structured = rawjson.SetText(structured, "error", said)
	}
	message := "HTTP " + answer.Status
	if said != "" {
		message += ": " + said
	}
	if after := answer.Header.Get("Retry-After"); after != "" {
		structured = rawjson.SetText(structured, "retry_after", after)
		message += "\nThe service may be asked again after: " + after
	}
	if answer.StatusCode == http.StatusUnauthorized {
		message += "\n" + c.env.RefusedCredentials()
	}
	return api.Failure(message, structured)
}

// explain is the message of an error in JSON: title and detail of RFC 9457, or what other
// services call it, and then all of it.
func explain(body json.RawMessage) string {
	var said []string
	for _, path := range []string{"title", "detail", "message", "error/message", "error_description", "error", "errors/0/message"} {
		value, ok := rawjson.Path(body, path)
		if text, isText := rawjson.Text(value); ok && isText && text != "" {
			said = append(said, text)
		}
	}
	if len(said) == 0 {
		return string(body)
	}
	return strings.Join(said, ": ") + "\n" + string(body)
}

// Identify adds the header by which the service recognizes a repeated request, if one is
// configured and the request needs it.
func (c *Client) Identify(r *Request) {
	if name := c.env.Settings.IdempotencyHeader; name != "" && !r.Repeatable {
		r.Header.Set(name, strings.ToLower(rand.Text()))
		r.Repeatable = true
	}
}
