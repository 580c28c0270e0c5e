package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
)

// post sends a request and returns the response of an endpoint that accepts it. The
// caller closes its body.
func post(ctx context.Context, client *http.Client, endpoint string, header http.Header, request any) (*http.Response, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "write request")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "write request")
	}
	req.Header = header
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	resp, err := client.Do(req)
	if err != nil {
		return nil, unwrapURL(err)
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, refusal(resp)
	}
	return resp, nil
}

// unwrapURL removes the address, which may contain a password, from an error.
func unwrapURL(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// refusal reads why an endpoint refused a request.
func refusal(resp *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		body = nil // the status is enough
	}
	kind, text := errorIn(body)
	return refusedBy(resp.StatusCode, resp.Header, kind, text)
}

// errorIn reads the forms of errors: {"error": {…}}, {"error": "…"}, {"message": "…"}, or
// plain text.
func errorIn(body []byte) (kind, text string) {
	var shape struct {
		Error   json.RawMessage
		Message string
	}
	if json.Unmarshal(body, &shape) != nil {
		return "", string(body)
	}
	var inner struct{ Type, Message string }
	if json.Unmarshal(shape.Error, &inner) == nil {
		return inner.Type, inner.Message
	}
	if plain, ok := rawjson.Text(shape.Error); ok {
		return "", plain
	}
	return "", shape.Message
}
