package upstream

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/luanette/luanette/internal/mcp/wire"
)

// statusError is an HTTP status that is not an answer.
type statusError struct {
	Code      int
	Status    string
	Challenge string // WWW-Authenticate
	Body      string
}

// newStatusError takes the response and the beginning of its body.
func newStatusError(r *http.Response, body []byte) *statusError {
	return &statusError{
		Code:      r.StatusCode,
		Status:    r.Status,
		Challenge: clean(strings.Join(r.Header.Values("WWW-Authenticate"), ", ")),
		Body:      excerpt(body),
	}
}

func (e *statusError) Error() string {
	text := "server answered " + e.Status
	if e.Body != "" {
		text += ": " + e.Body
	}
	return text
}

// auth reports whether the server requires credentials.
func (e *statusError) auth() bool {
	return e.Code == http.StatusUnauthorized || e.Code == http.StatusForbidden
}

func mediaType(r *http.Response) string { return wire.MediaType(r.Header.Get("Content-Type")) }

// maxExact is the largest announced body for which memory is allocated at once.
const maxExact = 64 << 10

// readBody reads a body of up to limit bytes.
func readBody(r *http.Response, limit int) ([]byte, error) {
	if size := r.ContentLength; size > 0 && size <= maxExact && size <= int64(limit) {
		body := make([]byte, size)
		if _, err := io.ReadFull(r.Body, body); err != nil {
			return nil, fmt.Errorf("read answer: %w", err)
		}
		return body, nil
	}
	var buffer bytes.Buffer
	n, err := buffer.ReadFrom(io.LimitReader(r.Body, int64(limit)+1))
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	if n > int64(limit) {
		return nil, fmt.Errorf("read answer over %d bytes: %w", limit, wire.ErrTooLarge)
	}
	return buffer.Bytes(), nil
}

// readStart reads as much of a body as errors show.
func readStart(r *http.Response) ([]byte, error) {
	start, err := io.ReadAll(io.LimitReader(r.Body, maxExcerpt))
	if err != nil {
		err = fmt.Errorf("read answer: %w", err)
	}
	return start, err
}
